// Dead letters: grouped by error, as a list, and bulk actions.
import { useEffect, useState } from "preact/hooks";
import { may, type Query, segments } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import type { DeadRow, Feed, Filter, Groups, Replay, Status as StatusName } from "../../api/types";
import { t } from "../../i18n";
import { counted } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import {
  Card,
  type Column,
  Empty,
  Field,
  Icon,
  Link,
  Num,
  Page,
  Pager,
  Problem,
  Select,
  Skeleton,
  Status,
  Table,
  Text,
  Time,
} from "../../ui";
import { BulkDialog } from "./bulk";
import { ErrorGroups } from "./groups";
import { JobProgress } from "./job";

const fields = ["feed", "consumer", "status", "type", "key", "topic", "tenant", "error"] as const;
type Name = (typeof fields)[number];

function asked(): Record<Name, string> {
  return Object.fromEntries(fields.map((f) => [f, query.value.get(f) ?? ""])) as Record<Name, string>;
}

/** The same selection as a filter for actions. */
export function filterOf(q: Record<Name, string>): Filter {
  const f: Filter = {};
  const feed = q.consumer ? `inbox/${q.consumer}` : q.feed;
  if (feed) f.feed = feed;
  if (q.status) f.statuses = q.status.split(",") as StatusName[];
  for (const k of ["type", "key", "topic", "tenant", "error"] as const) if (q[k]) f[k] = q[k];
  return f;
}

const columns = (): Column<DeadRow>[] => [
  { name: t("col.status"), cell: (r) => <Status value={r.status} /> },
  {
    name: t("col.type"),
    grow: true,
    cell: (r) => (
      <div class="two">
        <span class="cut">
          <Link to={`/messages/${segments(r.id)}`}>
            <Text value={r.type} />
          </Link>
          {r.blocking && (
            <span class="blocking" title={t("message.blocking")}>
              <Icon name="lock" size={12} />
              {t("dead.blocking")}
            </span>
          )}
        </span>
        <span class="bad-text" title={r.last_error}>
          {r.last_error && <Text value={r.last_error} />}
        </span>
      </div>
    ),
  },
  {
    name: `${t("col.key")} · ${t("col.feed")}`,
    hide: "narrow",
    cell: (r) => (
      <div class="two whole">
        <span>{r.key ? <Text value={r.key} /> : <span class="faint">–</span>}</span>
        <Text value={r.feed} />
      </div>
    ),
  },
  { name: t("col.attempts"), num: true, hide: "medium", cell: (r) => <Num n={r.attempts} /> },
  { name: t("col.deferred"), num: true, cell: (r) => <Time at={r.deferred_at} /> },
];

function Filters({ q, feeds }: { q: Record<Name, string>; feeds: Feed[] }) {
  const [form, setForm] = useState(q);
  const address = JSON.stringify(q);
  useEffect(() => setForm(q), [address]);
  const apply = (changes: Partial<Record<Name, string>>) => setQuery({ ...form, ...changes }, "push");
  const place = q.consumer ? `inbox/${q.consumer}` : q.feed;
  const places = [...new Set([...feeds.map((f) => f.name), ...(place ? [place] : [])])];
  return (
    <search>
      <form
        class="filters"
        onSubmit={(e) => {
          e.preventDefault();
          apply({});
        }}
      >
        <div class="filters-first">
          <Field label={t("dead.error")} value={form.error} search onInput={(v) => setForm({ ...form, error: v })} />
          <Field label={t("col.type")} value={form.type} onInput={(v) => setForm({ ...form, type: v })} />
          <Field label={t("col.key")} value={form.key} onInput={(v) => setForm({ ...form, key: v })} />
          <Select
            label={t("col.feed")}
            value={place}
            onChange={(v) => apply({ feed: v, consumer: "" })}
            items={[["", t("dead.feed.any")], ...places.map((f) => [f, f] as [string, string])]}
          />
          <Select
            label={t("col.status")}
            value={form.status}
            onChange={(v) => apply({ status: v })}
            items={[
              ["", t("dead.filter.status")],
              ["dead", t("status.dead")],
              ["parked", t("status.parked")],
            ]}
          />
          <div class="filters-buttons">
            <button type="submit" class="button primary">
              <Icon name="search" size={14} />
              {t("messages.search")}
            </button>
            {fields.some((f) => q[f]) && (
              <button
                type="button"
                class="ghost"
                onClick={() => setQuery(Object.fromEntries(fields.map((f) => [f, undefined])), "push")}
              >
                {t("messages.clear")}
              </button>
            )}
          </div>
        </div>
      </form>
    </search>
  );
}

export function DeadPage() {
  const q = asked();
  const some = fields.some((f) => q[f]);
  const params: Query = { ...q, status: q.status || "dead,parked" };
  const list = usePages<DeadRow>("dead", params);
  const counts = useResource<Record<string, number>>("dead/count", params);
  const groups = useResource<Groups>("dead/groups", { ...params, error: undefined });
  const feeds = useResource<Feed[]>("feeds", {}, true);
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [bulk, setBulk] = useState<"all" | "some">();
  const [job, setJob] = useState<Replay>();
  const address = JSON.stringify(q);
  useEffect(() => setSelected(new Set()), [address]);

  const id = (r: DeadRow) => `${r.feed} ${r.id}`;
  const rows = list.data ?? [];
  const chosen = rows.filter((r) => selected.has(id(r)));
  const waiting = counts.data && [counts.data.dead ?? 0, counts.data.parked ?? 0];
  const reload = () => {
    setSelected(new Set());
    list.reload();
    counts.reload();
    groups.reload();
  };
  const none = list.data?.length === 0 && !list.more;
  return (
    <Page
      title={t("dead.title")}
      lead={t("dead.lead")}
      actions={
        may("operator") &&
        waiting?.some((n) => n > 0) && (
          <button type="button" class="button" onClick={() => setBulk("all")}>
            {t("dead.act.all")}
            <span class="count num">{counted(...waiting)}</span>
          </button>
        )
      }
    >
      {!(none && !some) && <Filters q={q} feeds={feeds.data ?? []} />}
      {job && <JobProgress job={job} onClose={() => setJob(undefined)} onDone={reload} />}
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {none && (
        <Card>
          <Empty
            icon={some ? "search" : "check"}
            tone={some ? undefined : "ok"}
            title={some ? t("dead.nomatch") : t("dead.none")}
          >
            {some ? t("dead.nomatch.help") : t("dead.none.help")}
          </Empty>
        </Card>
      )}
      {!none && (
        <div class="dead">
          <ErrorGroups groups={groups.data} current={q.error} />
          <Card flush>
            {list.loading && <Skeleton rows={12} />}
            {rows.length > 0 && (
              <>
                <Table
                  label={t("dead.title")}
                  rows={rows}
                  columns={columns()}
                  id={id}
                  to={(r) => `/messages/${segments(r.id)}`}
                  selected={selected}
                  onSelect={may("operator") ? setSelected : undefined}
                />
                <Pager shown={rows.length} more={list.more} busy={list.busy} />
              </>
            )}
          </Card>
        </div>
      )}
      {chosen.length > 0 && (
        <div class="selection" role="toolbar" aria-label={t("dead.selected", { n: chosen.length })}>
          <strong>{t("dead.selected", { n: chosen.length })}</strong>
          <button type="button" class="button primary" onClick={() => setBulk("some")}>
            {t("dead.act.some", { n: chosen.length })}
          </button>
          <button type="button" class="ghost" onClick={() => setSelected(new Set())}>
            {t("dead.unselect")}
          </button>
        </div>
      )}
      {bulk && (
        <BulkDialog
          filter={filterOf(q)}
          rows={bulk === "some" ? chosen : undefined}
          onClose={() => setBulk(undefined)}
          onDone={(d) => {
            if (d?.job) setJob(d.job);
            reload();
          }}
        />
      )}
    </Page>
  );
}
