// Types of the server's JSON API. Times are RFC 3339 in UTC; an absent field is unknown or does not apply.
// All addresses below are relative to <prefix>/api/v1. Every request takes ?db=NAME; the default is the first database.
// Errors are application/problem+json: {type, title, status, detail, next?}; "next" is the suggested command or step.

export type Role = "viewer" | "operator" | "admin";
export type Status = "pending" | "published" | "scheduled" | "retry" | "held" | "waiting" | "dead" | "parked";

/** GET /me */
export interface Me {
  name: string;
  role: Role;
  payloads: boolean; // may see payloads and header values
  via: "local" | "token" | "oidc" | "proxy";
  version: string;
  databases: string[];
  pages: string[]; // of the pages below, those that there is something behind
  trace_url?: string; // with {trace_id}
  can_logout: boolean;
}

/** Lists come in pages: cursor is opaque, and absent on the last page. ?cursor=…&limit=… (default 50, at most 500) */
export interface Page<T> {
  items: T[];
  cursor?: string;
  until?: string; // a search ended here before it found enough: nothing older was looked at, cursor goes on from there
}

export interface Estimate {
  n: number;
  exact: boolean;
}

export interface DeferredCount {
  scheduled: number;
  retry: number;
  held: number;
  waiting: number;
  dead: number;
  parked: number;
  blocked: number;
  exact: boolean; // false: counted up to 10,000 each, there may be more
}

/** A current problem. The console translates it by kind and params; text is English. */
export interface Problem {
  kind:
    | "foreign"
    | "no_feed"
    | "paused"
    | "no_relay"
    | "consumer_gone"
    | "stalled"
    | "late"
    | "dead"
    | "blocked"
    | "failing"
    | "consumer_dead"
    | "consumer_blocked"
    | "saga_stuck"
    | "reconciler_failed"
    | "unreachable";
  severity: "problem" | "warning";
  feed?: string;
  consumer?: string;
  text: string;
  params: Record<string, string | number>;
  command: string; // the CLI command that helps
  page: string; // where the button that helps leads to, such as "/dead?feed=default"
}

/** GET /overview */
export interface Overview {
  at: string;
  healthy: boolean;
  problems: Problem[]; // worst first
  feeds: Feed[];
  consumers: Consumer[];
  totals: { pending: Estimate; dead: Estimate; blocked: Estimate; oldest?: string };
  elsewhere: { database: string; problems: number; worst: Problem }[]; // other databases that need attention
}

/** GET /series?minutes=15  Arrays of equal length; null if unknown. */
export interface Series {
  step: number; // seconds
  t: number[]; // Unix seconds
  enqueued: (number | null)[]; // messages a second
  published: (number | null)[];
  failed: (number | null)[];
  pending: (number | null)[];
  oldest: (number | null)[]; // age in seconds of the oldest message that waits
  p50: (number | null)[]; // seconds from enqueue to confirmation, of relays in this process
  p95: (number | null)[];
  p99: (number | null)[];
}

/** GET /events (text/event-stream). event: sample → Sample; event: overview → Overview, when it changed. id: is t. */
export interface Sample {
  t: number;
  enqueued: number | null;
  published: number | null;
  failed: number | null;
  pending: number | null;
  oldest: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** GET /feeds → Feed[]; POST /feeds {name, oldest, why}; DELETE /feeds/{name} {why} */
export interface Feed {
  name: string;
  paused: boolean;
  relays: number;
  pending: Estimate;
  oldest?: string;
  settled?: string;
  canary?: string;
  deferred: DeferredCount;
  rate: number | null; // delivered a second, lately
  to?: string; // destinations, when a relay of this process serves it
  problems: Problem[];
}

/** GET /feeds/{name} → FeedDetail; POST /feeds/{name}/pause|resume {why}; POST /feeds/{name}/rewind {time?, id?, why, dry_run} → Done */
export interface FeedDetail extends Feed {
  shards: Shard[];
  members: Relay[];
  outages: Outage[]; // those that are not over first
}

/** A current or past problem of a destination, or of one name of it. */
export interface Outage {
  name: string; // queue, topic, subject or endpoint; empty: all of the destination
  cause: string;
  failures: number;
  since: string;
  last: string;
  over?: string;
}

export interface Shard {
  shard: number;
  base: number;
  tenant?: string;
  holder?: string;
  until?: string;
  at: string;
  last: number;
  pending: Estimate;
  oldest?: string;
  crashes?: number;
}

/** GET /relays → Relay[] */
export interface Relay {
  id: string;
  name: string;
  feed: string;
  since: string;
  heard: string;
  until: string;
  shards: number[];
  here: boolean; // a relay of this process
  stats?: RelayStats; // only of relays of this process
}

export interface RelayStats {
  published: number;
  failed: number;
  refused: number;
  retried: number;
  deferred: number;
  dead: number;
  reads: number;
  settles: number;
  balances: number;
  fenced: number;
  resets: number;
  blocked: number;
  shards: number;
  quota: number;
  members: number;
  buffered: number;
  failing: number;
  paused?: string;
}

/** GET /messages?feed=&status=&type=&topic=&key=&tenant=&id=&since=&until= → Page<LogRow>, newest first.
 *  GET /messages/tail?feed=&type=&topic=&key=&tenant= (text/event-stream) event: message → LogRow */
export interface LogRow {
  id: string;
  seq: number;
  shard: number;
  feed: string;
  type: string;
  key?: string;
  topic?: string;
  tenant?: string;
  status: Status;
  attempts: number;
  enqueued_at: string;
  available_at?: string;
  last_error?: string;
  bytes: number;
}

/** GET /messages/{id} */
export interface Journey {
  message: Message;
  in_log: boolean;
  seq: number;
  enqueued_at?: string;
  feeds: Leg[]; // of relays and, where feed begins with "inbox/", of consumers that have deferred it
  receipts: { consumer: string; at: string }[];
  records: AuditEntry[];
  timeline: Step[]; // all of it, in order of time
  trace_id?: string;
  command: string; // postrider messages show ID
}

export interface Message {
  id: string;
  type: string;
  aggregate_type?: string;
  aggregate_id?: string;
  key?: string; // the ordering key
  topic?: string;
  routing_key?: string;
  tenant?: string;
  content_type?: string;
  schema_version?: number;
  schema_id?: string;
  dedup_key?: string;
  occurred_at?: string;
  deliver_after?: string;
  priority?: number;
  correlation_id?: string;
  causation_id?: string;
  broker_id?: string;
  headers: Record<string, string>;
  payload: Payload;
}

export interface Payload {
  hidden: boolean; // the role may not see it: no text then
  redacted: string[]; // JSON paths that were blacked out
  kind: "json" | "text" | "binary" | "empty";
  text?: string; // json: indented, numbers and order of keys as they were written; binary: base64 of the first bytes
  bytes: number;
  truncated: boolean;
}

export interface Leg {
  feed: string;
  status: Status;
  blocking?: boolean;
  attempts: number;
  last_error?: string;
  deferred_at?: string;
  tried_at?: string;
  available_at?: string;
  settled?: string;
}

export interface Step {
  at?: string;
  kind:
    | "occurred"
    | "enqueued"
    | "scheduled"
    | "attempt"
    | "deferred"
    | "dead"
    | "parked"
    | "published"
    | "received"
    | "acted"
    | "due";
  where?: string; // feed or consumer
  text: string;
  detail?: string;
}

/** The response to an action. With dry_run, count is the number that would be affected, and sample a few of them. */
export interface Done {
  count: number;
  dry_run: boolean;
  sample?: DeadRow[];
  command: string; // the same as a CLI command
  job?: Replay;
}

/** GET /dead?feed=&consumer=&status=dead,parked&type=&topic=&key=&tenant=&since=&until=&error= → Page<DeadRow>, oldest first
 *  GET /dead/count?… → Record<Status, number>, each counted up to 10,000
 *  POST /dead/act {act: "retry"|"discard"|"park"|"skip", filter: Filter, limit, dry_run, why, rate?} → Done; retry of many becomes a replay job
 *  PUT /dead/{feed}/{id} {type, topic, routing_key, content_type, headers, payload (text), why} → Done */
export interface DeadRow {
  feed: string;
  id: string;
  seq: number;
  shard: number;
  type: string;
  key?: string;
  topic?: string;
  tenant?: string;
  status: Status;
  blocking: boolean;
  attempts: number;
  last_error?: string;
  enqueued_at: string;
  deferred_at: string;
  tried_at?: string;
}

export interface Filter {
  feed?: string;
  statuses?: Status[];
  id?: string;
  type?: string;
  topic?: string;
  key?: string;
  tenant?: string;
  since?: string;
  until?: string;
  error?: string;
}

/** GET /dead/groups?… (filter as above) */
export interface Groups {
  sampled: number;
  all: boolean;
  groups: { error: string; words: string; count: number; newest: string; types: string[]; feeds: string[] }[];
}

/** GET /keys?feed= → BlockedKey[]; POST /keys/act {feed, key, act: "retry"|"skip"|"park", why, dry_run} → Done */
export interface BlockedKey {
  feed: string;
  key: string;
  since: string;
  waiting: number;
  head: DeadRow;
}

/** GET /consumers → Consumer[] */
export interface Consumer {
  name: string;
  created: string;
  last?: string;
  heard?: string; // when a process last said that it works for it
  process?: string;
  deferred: DeferredCount;
  problems: Problem[];
}

/** GET /idempotency?tenant=&principal=&route=&key=&open= → Page<IdempotencyKey> */
export interface IdempotencyKey {
  tenant?: string;
  principal?: string;
  route: string;
  key: string;
  done: boolean;
  bytes?: number;
  leased?: string;
  expires: string;
}

/** GET /sagas?name=&id=&status= → Page<SagaRow>; GET /sagas/count → Record<string, number>
 *  GET /sagas/{name}/{id} → Saga; POST /sagas/{name}/{id}/act {act: "retry"|"compensate"|"skip", step?, why} → Done */
export interface SagaRow {
  name: string;
  id: string;
  status: "running" | "waiting" | "compensating" | "stuck" | "completed" | "compensated";
  started: string;
  finished?: string;
  cause?: string;
}

export interface Saga extends SagaRow {
  steps: SagaStep[];
  signals: { name: string; at: string }[];
  data?: Payload;
  command: string;
}

export interface SagaStep {
  name: string;
  state: string; // pending, ready, waiting, done, skipped, undoing, undone, stuck …
  after: string[]; // names of steps that come before it
  attempts: number;
  due?: string;
  error?: string;
  started?: string;
  finished?: string;
  current: boolean;
  compensates: boolean; // it has a compensation
}

/** GET /reconcilers → Reconciler[]; POST /reconcilers/{job}/run {why} → Done (only where can_run) */
export interface Reconciler {
  job: string;
  schedule: string;
  next?: string;
  holder?: string;
  until?: string;
  runs: number;
  failed: number;
  total: { found: number; fixed: number };
  last: { started?: string; finished?: string; holder?: string; found: number; fixed: number; error?: string };
  can_run: boolean;
}

/** GET /databases → DatabaseHealth[] */
export interface DatabaseHealth {
  name: string;
  at: string;
  server: string;
  schema: string;
  version: number;
  size: number;
  tables: { name: string; bytes: number; rows: number; dead_rows: number; last_vacuum?: string }[];
  capacity: { slots: number; used: number; period: number }; // seconds
  oldest_transaction: number; // seconds
  oldest_snapshot: number;
  connections: number;
  max_connections: number;
  slots: { name: string; active: boolean; bytes: number }[];
  dedup_keys: number;
  idempotency_keys: number;
  error?: string; // it could not be asked
}

/** GET /doctor → Checkup (kept for 10 s) */
export interface Checkup {
  at: string;
  findings: {
    check: string;
    severity: "problem" | "warning" | "info" | "ok";
    subject?: string;
    finding: string;
    why?: string;
    fix?: string;
  }[];
}

/** GET /audit?feed= → Page<AuditEntry>, newest first */
export interface AuditEntry {
  n: number;
  at: string;
  who: string;
  login?: string;
  action: string;
  why?: string;
  feed?: string;
  count: number;
  target?: unknown;
  before?: unknown;
  after?: unknown;
}

/** GET /replays → Replay[]; GET /replays/{id}; POST /replays {filter, dead, rate, why, dry_run, force} → Done
 *  POST /replays/{id}/pause|resume|cancel {why} */
export interface Replay {
  id: number;
  state: "running" | "paused" | "done" | "cancelled";
  filter: Filter;
  dead: boolean;
  rate: number;
  by: { who: string; why?: string };
  created: string;
  finished?: string;
  total: number;
  sent: number;
  delivered: number;
  failed: number;
}

/** Signing in. GET <prefix>/auth/methods → Methods; POST <prefix>/auth/session {token} → 204 and a cookie; GET <prefix>/auth/login?to=PATH
 *  begins OIDC; POST <prefix>/auth/logout → 204. An API call without a session answers 401. */
export interface Methods {
  token: boolean;
  oidc: boolean;
}
