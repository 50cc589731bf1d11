// Rows of the log, and the log as it grows.
import { useEffect, useRef, useState } from "preact/hooks";
import { apiURL, type Query, segments, signedOut } from "../../api/client";
import { follow, type StreamState } from "../../api/sse";
import type { LogRow } from "../../api/types";
import { t } from "../../i18n";
import { bytes } from "../../lib/format";
import { Badge, Card, type Column, Empty, Icon, Link, Num, Status, Table, Text, Time } from "../../ui";

const columns = (): Column<LogRow>[] => [
  { name: t("col.status"), cell: (r) => <Status value={r.status} /> },
  {
    name: t("col.type"),
    grow: true,
    cell: (r) => (
      <div class="two">
        <Link to={`/messages/${segments(r.id)}`} label={t("messages.open", { id: r.id })}>
          <Text value={r.type} />
        </Link>
        {r.last_error ? (
          <span class="bad-text" title={r.last_error}>
            <Text value={r.last_error} />
          </span>
        ) : (
          <span class="mono">{r.id}</span>
        )}
      </div>
    ),
  },
  { name: t("col.key"), hide: "narrow", cell: (r) => (r.key ? <Text value={r.key} /> : <span class="faint">–</span>) },
  { name: t("col.topic"), hide: "medium", cell: (r) => r.topic && <Text value={r.topic} /> },
  { name: t("col.tenant"), hide: "medium", cell: (r) => r.tenant && <Text value={r.tenant} /> },
  { name: t("col.attempts"), num: true, hide: "medium", cell: (r) => <Num n={r.attempts} dim /> },
  { name: t("col.size"), num: true, hide: "medium", cell: (r) => <span class="num muted">{bytes(r.bytes)}</span> },
  { name: t("col.enqueued"), num: true, cell: (r) => <Time at={r.enqueued_at} /> },
];

export function MessagesTable({ rows, fresh }: { rows: LogRow[]; fresh?: Set<string> }) {
  return (
    <Table
      label={t("messages.title")}
      rows={rows}
      columns={columns()}
      id={(r) => r.id}
      to={(r) => `/messages/${segments(r.id)}`}
      fresh={fresh}
    />
  );
}

/** How many rows of the tail are kept. */
const kept = 200;

/** Adds new rows on top. A row that arrives again updates its status in place. */
function merged(came: LogRow[], old: LogRow[]): LogRow[] {
  const latest = new Map(came.map((r) => [r.seq, r]));
  const known = new Set(old.map((r) => r.seq));
  const fresh = [...latest.values()].filter((r) => !known.has(r.seq)).sort((a, b) => b.seq - a.seq);
  return [...fresh, ...old.map((r) => latest.get(r.seq) ?? r)].slice(0, kept);
}

/** The log as it grows, newest on top. While paused, new rows are buffered; while the page is hidden, nothing is fetched. */
export function Tail({ query }: { query: Query }) {
  const [rows, setRows] = useState<LogRow[]>([]);
  const [held, setHeld] = useState<LogRow[]>([]);
  const [paused, setPaused] = useState(false);
  const [state, setState] = useState<StreamState>("connecting");
  const [hidden, setHidden] = useState(document.hidden);
  const stopped = useRef(paused);
  stopped.current = paused;
  const key = JSON.stringify(query);

  useEffect(() => {
    const look = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  useEffect(() => {
    if (hidden) return;
    // Render at most a few times a second.
    let waiting: LogRow[] = [];
    const timer = setInterval(() => {
      if (waiting.length === 0) return;
      const came = waiting;
      waiting = [];
      (stopped.current ? setHeld : setRows)((old) => merged(came, old));
    }, 250);
    const stop = follow({
      url: () => apiURL("messages/tail", query),
      onState: setState,
      onStatus: (status) => {
        if (status === 401) signedOut.value = true;
      },
      onEvent: (e) => {
        if (e.type === "message") waiting.push(JSON.parse(e.data) as LogRow);
        if (waiting.length > kept) waiting = waiting.slice(-kept);
      },
    });
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [key, hidden]);

  const resume = () => {
    setRows((old) => merged(held, old));
    setHeld([]);
    setPaused(false);
  };
  const tone = state === "live" ? "ok" : state === "connecting" ? "idle" : "warn";
  return (
    <Card
      flush
      title={
        <span class="row">
          {t("messages.tail")}
          <Badge tone={paused ? "idle" : tone}>
            {paused ? t("live.paused") : t(`live.${state === "failed" ? "reconnecting" : state}`)}
          </Badge>
        </span>
      }
      actions={
        <>
          {held.length > 0 && <span class="muted">{t("messages.tail.held", { n: held.length })}</span>}
          <button type="button" class="button quiet" onClick={() => (paused ? resume() : setPaused(true))}>
            <Icon name={paused ? "play" : "pause"} size={13} />
            {paused ? t("messages.tail.resume") : t("messages.tail.pause")}
          </button>
        </>
      }
    >
      {rows.length === 0 ? (
        <Empty icon="clock" title={t("messages.tail.wait")}>
          {t("messages.tail.wait.help")}
        </Empty>
      ) : (
        <MessagesTable rows={rows} fresh={new Set(rows.slice(0, 30).map((r) => r.id))} />
      )}
    </Card>
  );
}
