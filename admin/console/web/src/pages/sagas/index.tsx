// Sagas: work in steps, each undone when a later one fails.
export { SagasPage } from "./list";
export { SagaPage } from "./saga";
