import { useEffect, useRef, useState } from "preact/hooks";
import { segments } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import type { SagaRow } from "../../api/types";
import { t } from "../../i18n";
import { duration, now, num } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import { Card, Field, Link, Page, Pager, Table, Tabs, Text, Time } from "../../ui";
import { Loaded, useSettled } from "../system";
import { SagaBadge, type SagaStatus, statuses } from "./state";

/** All sagas, by status. */
export function SagasPage() {
  const q = query.value;
  const status = (q.get("status") ?? "") as SagaStatus | "";
  const [draft, setDraft] = useState({ name: q.get("name") ?? "", id: q.get("id") ?? "" });
  const settled = useSettled(draft);
  useEffect(() => setQuery(settled), [settled]);
  const tabs = useRef<HTMLDivElement>(null);
  useEffect(() => {
    tabs.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [status]);
  const filter = { name: q.get("name") ?? undefined, id: q.get("id") ?? undefined };
  const counts = useResource<Record<string, number>>("sagas/count", filter);
  const sagas = usePages<SagaRow>("sagas", { ...filter, status: status || undefined });
  const filtered = status !== "" || filter.name || filter.id;
  const total = Object.values(counts.data ?? {}).reduce((a, b) => a + b, 0);
  const item = (
    v: SagaStatus | "",
    label: string,
    n: number | undefined,
  ): [SagaStatus | "", preact.ComponentChildren] => [
    v,
    <span class="sys-tab" key={v}>
      {label}
      {n !== undefined && <span class={v === "stuck" && n > 0 ? "sys-count bad" : "sys-count"}>{num(n)}</span>}
    </span>,
  ];
  return (
    <Page title={t("nav.sagas")} lead={t("sagas.lead")}>
      <div class="sys-scroll" ref={tabs}>
        <Tabs
          label={t("col.status")}
          value={status}
          items={[
            item("", t("sagas.all"), counts.data ? total : undefined),
            ...statuses.map((s) => item(s, t(`sagas.${s}`), counts.data ? (counts.data[s] ?? 0) : undefined)),
          ]}
          onChange={(v) => setQuery({ status: v })}
        />
      </div>
      <search>
        <form class="sys-filter" onSubmit={(e) => e.preventDefault()}>
          <Field
            label={t("col.name")}
            type="search"
            value={draft.name}
            onInput={(name) => setDraft({ ...draft, name })}
            placeholder="book-trip"
          />
          <Field
            label={t("col.id")}
            type="search"
            search
            value={draft.id}
            onInput={(id) => setDraft({ ...draft, id })}
            mono
          />
        </form>
      </search>
      <Card flush>
        <Loaded
          of={sagas}
          icon="sagas"
          tone={status === "stuck" ? "ok" : undefined}
          title={t(status === "stuck" ? "sagas.nonestuck" : filtered ? "sagas.nomatch" : "sagas.none")}
          help={t(status === "stuck" ? "sagas.nonestuck.help" : filtered ? "sagas.nomatch.help" : "sagas.none.help")}
        >
          {(rows) => (
            <>
              <Table
                label={t("nav.sagas")}
                rows={rows}
                id={(s) => `${s.name} ${s.id}`}
                to={(s) => `/sagas/${segments(s.name, s.id)}`}
                columns={[
                  {
                    name: t("col.id"),
                    cell: (s) => (
                      <div class="two sys-name">
                        <Link to={`/sagas/${segments(s.name, s.id)}`}>
                          <Text value={s.id} />
                        </Link>
                        <span>
                          <Text value={s.name} />
                        </span>
                      </div>
                    ),
                  },
                  { name: t("col.status"), cell: (s) => <SagaBadge value={s.status} /> },
                  {
                    name: t("sagas.cause"),
                    grow: true,
                    hide: "medium",
                    cell: (s) =>
                      s.cause && (
                        <span class="muted">
                          <Text value={s.cause} />
                        </span>
                      ),
                  },
                  { name: t("sagas.started"), num: true, hide: "narrow", cell: (s) => <Time at={s.started} /> },
                  { name: t("sagas.took"), num: true, cell: (s) => <Took of={s} /> },
                ]}
              />
              <Pager shown={rows.length} more={sagas.more} busy={sagas.busy} />
            </>
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** How long a saga has taken, or takes already. */
export function Took({ of }: { of: SagaRow }) {
  const end = of.finished ? Date.parse(of.finished) : now.value;
  return (
    <span class={of.finished ? "num" : "num muted"}>
      {duration(Math.max(0, Math.round((end - Date.parse(of.started)) / 100) / 10))}
    </span>
  );
}
