// Feeds: readers of the log, each with its own place in it.
export { FeedPage } from "./feed";
export { FeedsPage } from "./list";
