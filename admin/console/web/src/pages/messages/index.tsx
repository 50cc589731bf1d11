// The log: search, or follow new messages.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Query } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import type { Feed, LogRow, Status as StatusName } from "../../api/types";
import { t } from "../../i18n";
import { now, parseTime } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import { Card, Empty, Field, Icon, Page, Pager, Problem, Select, Skeleton, Tabs } from "../../ui";
import { MessagesTable, Tail } from "./list";

const fields = ["key", "type", "topic", "tenant", "id", "status", "feed", "since", "until"] as const;
type Name = (typeof fields)[number];
const states: StatusName[] = ["pending", "published", "scheduled", "retry", "held", "waiting", "dead", "parked"];

/** The query of the page's address, for the API. */
function asked(tail: boolean): Query {
  const q: Query = {};
  for (const f of fields) {
    const v = query.value.get(f)?.trim();
    if (!v || (tail && (f === "since" || f === "until" || f === "status" || f === "id"))) continue;
    q[f] = v;
  }
  return q;
}

/** Durations such as 2h are relative to the time of the request. */
function times(wanted: Query): Query {
  const q = { ...wanted };
  for (const f of ["since", "until"] as const) if (q[f]) q[f] = parseTime(String(q[f]), Date.now()) || undefined;
  return q;
}

function SearchForm({ feeds, tail }: { feeds: Feed[]; tail: boolean }) {
  const from = () => Object.fromEntries(fields.map((f) => [f, query.value.get(f) ?? ""])) as Record<Name, string>;
  const [form, setForm] = useState(from);
  const [more, setMore] = useState(() => ["topic", "tenant", "id", "since", "until"].some((f) => query.value.get(f)));
  const address = fields.map((f) => query.value.get(f) ?? "").join("\n");
  useEffect(() => setForm(from()), [address]);
  const set = (f: Name) => (v: string) => setForm((x) => ({ ...x, [f]: v }));
  const apply = (changes: Partial<Record<Name, string>> = {}) => {
    const next = { ...form, ...changes };
    setForm(next);
    setQuery(Object.fromEntries(fields.map((f) => [f, next[f].trim() || undefined])), "push");
  };
  const bad = (f: "since" | "until") =>
    form[f] && !parseTime(form[f], now.peek()) ? t("messages.time.bad") : undefined;
  const some = fields.some((f) => form[f]);
  return (
    <search>
      <form
        class="filters"
        onSubmit={(e) => {
          e.preventDefault();
          if (!bad("since") && !bad("until")) apply();
        }}
      >
        <div class="filters-first">
          <Field label={t("col.key")} value={form.key} onInput={set("key")} search placeholder="order/48017" />
          <Field label={t("col.type")} value={form.type} onInput={set("type")} placeholder="order.placed" />
          {!tail && (
            <Select
              label={t("col.status")}
              value={form.status}
              onChange={(v) => apply({ status: v })}
              items={[["", t("status.any")], ...states.map((s) => [s, t(`status.${s}`)] as [string, string])]}
            />
          )}
          {feeds.length > 1 && (
            <Select
              label={t("col.feed")}
              value={form.feed}
              onChange={(v) => apply({ feed: v })}
              items={[["", t("messages.feed.all")], ...feeds.map((f) => [f.name, f.name] as [string, string])]}
            />
          )}
          <div class="filters-buttons">
            <button type="submit" class="button primary">
              <Icon name="search" size={14} />
              {t("messages.search")}
            </button>
            <button type="button" class="button" aria-expanded={more} onClick={() => setMore(!more)}>
              <Icon name="filter" size={14} />
              {t("messages.more")}
            </button>
            {some && (
              <button type="button" class="ghost" onClick={() => apply(Object.fromEntries(fields.map((f) => [f, ""])))}>
                {t("messages.clear")}
              </button>
            )}
          </div>
        </div>
        {more && (
          <div class="filters-more">
            <Field label={t("col.topic")} value={form.topic} onInput={set("topic")} />
            <Field label={t("col.tenant")} value={form.tenant} onInput={set("tenant")} />
            {!tail && (
              <>
                <Field label={t("col.id")} value={form.id} onInput={set("id")} mono />
                <Field
                  label={t("messages.since")}
                  value={form.since}
                  onInput={set("since")}
                  placeholder={t("messages.time.help")}
                  error={bad("since")}
                />
                <Field
                  label={t("messages.until")}
                  value={form.until}
                  onInput={set("until")}
                  placeholder={t("messages.time.help")}
                  error={bad("until")}
                />
              </>
            )}
          </div>
        )}
      </form>
    </search>
  );
}

function Found() {
  const wanted = asked(false);
  const q = useMemo(() => times(wanted), [JSON.stringify(wanted)]);
  const some = Object.keys(q).length > 0;
  const list = usePages<LogRow>("messages", q);
  return (
    <>
      {list.error && <Problem error={list.error} retry={list.reload} />}
      <Card flush>
        {list.loading && <Skeleton rows={12} />}
        {list.data?.length === 0 && !list.more && (
          <Empty icon="messages" title={some ? t("messages.none") : t("messages.empty")}>
            {some ? t("messages.none.help") : t("messages.empty.help")}
          </Empty>
        )}
        {list.data && list.data.length > 0 && <MessagesTable rows={list.data} />}
        {list.data && (list.data.length > 0 || list.more) && (
          <Pager shown={list.data.length} more={list.more} busy={list.busy} until={list.until} />
        )}
      </Card>
    </>
  );
}

export function MessagesPage() {
  const feeds = useResource<Feed[]>("feeds", {}, true);
  const tail = query.value.get("tail") === "1";
  return (
    <Page
      title={t("messages.title")}
      lead={t("messages.lead")}
      actions={
        <Tabs
          label={t("messages.title")}
          value={tail ? "tail" : "search"}
          onChange={(v) => setQuery({ tail: v === "tail" ? "1" : undefined }, "push")}
          items={[
            ["search", t("messages.search")],
            ["tail", t("messages.tail")],
          ]}
        />
      }
    >
      <SearchForm feeds={feeds.data ?? []} tail={tail} />
      {tail ? <Tail query={asked(true)} /> : <Found />}
    </Page>
  );
}
