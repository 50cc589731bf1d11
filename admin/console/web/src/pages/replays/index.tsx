// Replays: jobs that send messages again.
export { ReplaysPage } from "./list";
export { ReplayPage } from "./replay";
