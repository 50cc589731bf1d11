// Who has done what, when and why.
import { useState } from "preact/hooks";
import { usePages, useResource } from "../api/resource";
import type { AuditEntry, Consumer, Feed } from "../api/types";
import { known, t } from "../i18n";
import { diff } from "../lib/diff";
import { absolute, shellWord } from "../lib/format";
import { query, setQuery } from "../lib/router";
import {
  Badge,
  Card,
  Command,
  Dialog,
  Facts,
  Json,
  Num,
  Page,
  Pager,
  Select,
  Table,
  Text,
  Time,
  type Tone,
} from "../ui";
import { Loaded } from "./system";

const tones: [RegExp, Tone][] = [
  [/discard|remove|rm\b|cancel|delete/, "bad"],
  [/rewind|pause|skip|park|compensate|force/, "warn"],
  [/retry|replay|resume/, "info"],
  [/edit|add/, "accent"],
];

export function AuditPage() {
  const feed = query.value.get("feed") ?? "";
  const entries = usePages<AuditEntry>("audit", { feed: feed || undefined });
  const feeds = useResource<Feed[]>("feeds", {}, true);
  const consumers = useResource<Consumer[]>("consumers", {}, true);
  const [open, setOpen] = useState<AuditEntry>();
  const names = [...(feeds.data ?? []).map((f) => f.name), ...(consumers.data ?? []).map((c) => `inbox/${c.name}`)];
  if (feed && !names.includes(feed)) names.push(feed);
  return (
    <Page
      title={t("nav.audit")}
      lead={t("audit.lead")}
      actions={
        <Select
          bare
          label={t("col.feed")}
          value={feed}
          items={[["", t("audit.all")], ...names.map((n): [string, string] => [n, n])]}
          onChange={(v) => setQuery({ feed: v })}
        />
      }
    >
      <Card flush>
        <Loaded of={entries} icon="audit" title={t(feed ? "audit.nomatch" : "audit.none")} help={t("audit.none.help")}>
          {(rows) => (
            <>
              <Table
                label={t("nav.audit")}
                rows={rows}
                id={(e) => String(e.n)}
                onOpen={setOpen}
                columns={[
                  { name: t("audit.when"), cell: (e) => <Time at={e.at} /> },
                  { name: t("audit.who"), cell: (e) => <Text value={e.who} /> },
                  {
                    name: t("audit.what"),
                    cell: (e) => (
                      <button type="button" class="sys-link" onClick={() => setOpen(e)}>
                        <What action={e.action} />
                      </button>
                    ),
                  },
                  { name: t("col.feed"), hide: "narrow", cell: (e) => e.feed && <Text value={e.feed} /> },
                  { name: t("audit.count"), num: true, hide: "narrow", cell: (e) => <Num n={e.count} dim /> },
                  {
                    name: t("audit.why"),
                    grow: true,
                    hide: "narrow",
                    cell: (e) => (e.why ? <Text value={e.why} /> : <span class="faint">–</span>),
                  },
                ]}
              />
              <Pager shown={rows.length} more={entries.more} busy={entries.busy} />
            </>
          )}
        </Loaded>
      </Card>
      <Command
        text={
          feed
            ? `postrider audit ls ${feed.startsWith("inbox/") ? `--consumer ${shellWord(feed.slice(6))}` : `--feed ${shellWord(feed)}`}`
            : "postrider audit ls"
        }
      />
      {open && <Entry of={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

function What({ action }: { action: string }) {
  const tone = tones.find(([words]) => words.test(action))?.[1] ?? "idle";
  const key = `audit.action.${action.replaceAll(" ", "_")}`;
  return <Badge tone={tone}>{known(key) ? t(key) : action}</Badge>;
}

/** All that was recorded of an action. */
function Entry({ of: e, onClose }: { of: AuditEntry; onClose: () => void }) {
  const changed = e.before !== undefined || e.after !== undefined;
  return (
    <Dialog title={t("audit.entry", { n: e.n })} size="large" onClose={onClose}>
      <div class="stack">
        <Facts
          items={[
            [t("audit.what"), <What action={e.action} key="w" />],
            [t("audit.when"), absolute(Date.parse(e.at))],
            [
              t("audit.who"),
              <span key="o">
                <Text value={e.who} />
                {e.login && (
                  <span class="muted">
                    {" "}
                    ({t("audit.login")} <Text value={e.login} mono />)
                  </span>
                )}
              </span>,
            ],
            [t("audit.why"), e.why ? <Text value={e.why} /> : <span class="muted">{t("audit.noreason")}</span>],
            [t("col.feed"), e.feed && <Text value={e.feed} />],
            [t("audit.count"), <Num n={e.count} key="n" />],
          ]}
        />
        {e.target !== undefined && (
          <div>
            <h3 class="sys-h3">{t("audit.target")}</h3>
            <Json text={JSON.stringify(e.target, null, 2)} />
          </div>
        )}
        {changed && (
          <div>
            <h3 class="sys-h3">{t("audit.change")}</h3>
            <Diff before={e.before} after={e.after} />
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** JSON within JSON, such as a payload, is laid out too, so that its lines can be compared. */
function laidOut(value: unknown): string {
  if (value === undefined || value === null) return "";
  const open = (v: unknown): unknown => {
    if (typeof v !== "string" || !/^\s*[{[]/.test(v)) return v;
    try {
      return JSON.parse(v);
    } catch {
      return v;
    }
  };
  const top =
    typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, open(v)])) : value;
  return JSON.stringify(top, null, 2);
}

function Diff({ before, after }: { before: unknown; after: unknown }) {
  const lines = diff(laidOut(before), laidOut(after)).filter((l) => l.text !== "" || l.sign === " ");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must get there
    <pre class="sys-diff" tabIndex={0}>
      {lines.map((l, i) => (
        <div class={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : "same"} key={i}>
          <span aria-hidden="true">{l.sign}</span>
          <Text value={l.text} />
        </div>
      ))}
    </pre>
  );
}
