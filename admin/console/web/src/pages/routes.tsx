// The pages by path.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { match, navigate } from "../lib/router";
import type { IconName } from "../ui/icon";
import { AuditPage } from "./audit";
import { ConsumersPage } from "./consumers";
import { DatabasesPage } from "./databases";
import { DeadPage } from "./dead";
import { DoctorPage } from "./doctor";
import { FeedPage, FeedsPage } from "./feeds";
import { IdempotencyPage } from "./idempotency";
import { KeysPage } from "./keys";
import { MessagePage } from "./message";
import { MessagesPage } from "./messages";
import { OverviewPage } from "./overview";
import { ReconcilersPage } from "./reconcilers";
import { RelaysPage } from "./relays";
import { ReplayPage, ReplaysPage } from "./replays";
import { SagaPage, SagasPage } from "./sagas";

/** A redirect: users type the path of the API. */
function Moved({ to }: { to: string }) {
  useEffect(() => navigate(to, "replace"), [to]);
  return null;
}

type Render = (params: Record<string, string>) => JSX.Element | null;

const routes: [pattern: string, render: Render][] = [
  ["/", () => <OverviewPage />],
  ["/overview", () => <OverviewPage />],
  ["/messages", () => <MessagesPage />],
  ["/messages/tail", () => <Moved to="/messages?tail=1" />],
  ["/messages/:id", (p) => <MessagePage id={p.id!} key={p.id} />],
  ["/dead", () => <DeadPage />],
  ["/keys", () => <KeysPage />],
  ["/feeds", () => <FeedsPage />],
  ["/feeds/:name", (p) => <FeedPage name={p.name!} key={p.name} />],
  ["/relays", () => <RelaysPage />],
  ["/consumers", () => <ConsumersPage />],
  ["/replays", () => <ReplaysPage />],
  ["/replays/:id", (p) => <ReplayPage id={p.id!} key={p.id} />],
  ["/sagas", () => <SagasPage />],
  ["/sagas/:name/:id", (p) => <SagaPage name={p.name!} id={p.id!} key={`${p.name} ${p.id}`} />],
  ["/idempotency", () => <IdempotencyPage />],
  ["/reconcilers", () => <ReconcilersPage />],
  ["/databases", () => <DatabasesPage />],
  ["/doctor", () => <DoctorPage />],
  ["/audit", () => <AuditPage />],
];

/** The page of a path; null if there is none. */
export function render(path: string): JSX.Element | null {
  for (const [pattern, page] of routes) {
    const params = match(pattern, path);
    if (params) return page(params);
  }
  return null;
}

export type PageName = Extract<
  IconName,
  | "overview"
  | "messages"
  | "dead"
  | "keys"
  | "feeds"
  | "relays"
  | "consumers"
  | "replays"
  | "sagas"
  | "idempotency"
  | "reconcilers"
  | "databases"
  | "doctor"
  | "audit"
>;

/** The pages in the order of the rail, by group. Their names are those in Me.pages. */
export const groups: ["now" | "flow" | "work" | "system", PageName[]][] = [
  ["now", ["overview", "messages", "dead", "keys"]],
  ["flow", ["feeds", "relays", "consumers", "replays"]],
  ["work", ["sagas", "idempotency", "reconcilers"]],
  ["system", ["databases", "doctor", "audit"]],
];

/** The path of a page. */
export function pathOf(page: PageName): string {
  return page === "overview" ? "/" : `/${page}`;
}
