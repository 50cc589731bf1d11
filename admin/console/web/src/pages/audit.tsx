// The audit log.
import { useState } from "preact/hooks";
import { usePages, useResource } from "../api/resource";
import type { AuditEntry, Consumer, Feed } from "../api/types";
import { t } from "../i18n";
import { query, setQuery } from "../lib/router";
import { Card, Command, Num, Page, Pager, Select, Table, Text, Time } from "../ui";
import { Entry, What } from "./record";
import { Loaded, useCommand } from "./system";

export function AuditPage() {
  const feed = query.value.get("feed") ?? "";
  const entries = usePages<AuditEntry>("audit", { feed: feed || undefined });
  const feeds = useResource<Feed[]>("feeds", {}, true);
  const consumers = useResource<Consumer[]>("consumers", {}, true);
  const [open, setOpen] = useState<AuditEntry>();
  const command = useCommand();
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
        text={command(
          "audit ls",
          feed ? (feed.startsWith("inbox/") ? ["--consumer", feed.slice(6)] : ["--feed", feed]) : [],
        )}
      />
      {open && <Entry of={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}
