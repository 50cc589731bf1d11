// Feeds: readers of the log, each with its own position.
export { FeedPage } from "./feed";
export { FeedsPage } from "./list";
