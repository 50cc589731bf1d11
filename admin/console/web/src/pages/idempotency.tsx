// Idempotency keys: which requests have been seen, and whether their answer is kept.
import { useEffect, useState } from "preact/hooks";
import { usePages } from "../api/resource";
import type { IdempotencyKey } from "../api/types";
import { t } from "../i18n";
import { bytes, now } from "../lib/format";
import { query, setQuery } from "../lib/router";
import { Badge, Card, Check, Copy, Field, Icon, Page, Pager, ShortID, Table, Text, Time } from "../ui";
import { Loaded, useSettled } from "./system";

const fields = ["key", "route", "tenant", "principal"] as const;

export function IdempotencyPage() {
  const q = query.value;
  const [draft, setDraft] = useState(() => Object.fromEntries(fields.map((f) => [f, q.get(f) ?? ""])));
  const settled = useSettled(draft);
  useEffect(() => setQuery(settled), [settled]);
  const open = q.get("open") === "true";
  const filter = Object.fromEntries(fields.map((f) => [f, q.get(f) ?? undefined]));
  const filtered = open || fields.some((f) => q.get(f));
  const keys = usePages<IdempotencyKey>("idempotency", { ...filter, open: open || undefined });
  return (
    <Page title={t("nav.idempotency")} lead={t("idempotency.lead")}>
      <search>
        <form class="sys-filter" onSubmit={(e) => e.preventDefault()}>
          {fields.map((f) => (
            <Field
              key={f}
              label={t(`idempotency.${f}`)}
              value={draft[f] ?? ""}
              onInput={(v) => setDraft({ ...draft, [f]: v })}
              mono={f === "key" || f === "route"}
              placeholder={f === "route" ? "POST /orders" : undefined}
              type="search"
              search={f === "key"}
            />
          ))}
          <Check checked={open} onChange={(v) => setQuery({ open: v ? "true" : undefined })}>
            {t("idempotency.open")}
          </Check>
          {filtered && (
            <button
              type="button"
              class="ghost"
              onClick={() => {
                setDraft({});
                setQuery({
                  open: undefined,
                  key: undefined,
                  route: undefined,
                  tenant: undefined,
                  principal: undefined,
                });
              }}
            >
              <Icon name="cross" size={14} />
              {t("messages.clear")}
            </button>
          )}
        </form>
      </search>
      <Card flush>
        <Loaded
          of={keys}
          icon="idempotency"
          title={t(filtered ? "idempotency.nomatch" : "idempotency.none")}
          help={t(filtered ? "idempotency.nomatch.help" : "idempotency.none.help")}
        >
          {(rows) => (
            <>
              <Table
                label={t("nav.idempotency")}
                rows={rows}
                id={(k) => JSON.stringify([k.tenant, k.principal, k.route, k.key])}
                columns={[
                  {
                    name: t("idempotency.key"),
                    cell: (k) => (
                      <div class="two">
                        <span class="row sys-key">
                          <ShortID value={k.key} />
                          <Copy text={k.key} />
                        </span>
                        <span class="sys-narrow">
                          <Text value={k.route} mono />
                        </span>
                      </div>
                    ),
                  },
                  { name: t("col.status"), cell: (k) => <State of={k} /> },
                  {
                    name: t("idempotency.route"),
                    grow: true,
                    hide: "narrow",
                    cell: (k) => <Text value={k.route} mono />,
                  },
                  { name: t("idempotency.tenant"), hide: "narrow", cell: (k) => k.tenant && <Text value={k.tenant} /> },
                  {
                    name: t("idempotency.principal"),
                    hide: "medium",
                    cell: (k) => k.principal && <Text value={k.principal} />,
                  },
                  {
                    name: t("col.size"),
                    num: true,
                    hide: "narrow",
                    cell: (k) =>
                      k.bytes === undefined ? <span class="faint">–</span> : <span class="num">{bytes(k.bytes)}</span>,
                    sort: (a, b) => (a.bytes ?? 0) - (b.bytes ?? 0),
                  },
                  { name: t("idempotency.expires"), num: true, hide: "narrow", cell: (k) => <Time at={k.expires} /> },
                ]}
              />
              <Pager shown={rows.length} more={keys.more} busy={keys.busy} />
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

function State({ of: k }: { of: IdempotencyKey }) {
  if (Date.parse(k.expires) < now.value) return <Badge icon="trash">{t("idempotency.expired")}</Badge>;
  if (k.done)
    return (
      <Badge tone="ok" icon="check">
        {t("idempotency.answered")}
      </Badge>
    );
  if (k.leased && Date.parse(k.leased) > now.value)
    return (
      <Badge tone="info" icon="clock">
        {t("idempotency.running")}
      </Badge>
    );
  return (
    <span title={t("idempotency.abandoned.help")}>
      <Badge tone="warn" icon="retry">
        {t("idempotency.abandoned")}
      </Badge>
    </span>
  );
}
