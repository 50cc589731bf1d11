// Consumers: programs with an inbox, and what they have deferred.
import { useResource } from "../api/resource";
import type { Consumer } from "../api/types";
import { t } from "../i18n";
import { to } from "../lib/router";
import { Card, Link, Num, Page, Table, Text, Time } from "../ui";
import { Health, Loaded } from "./system";

export function ConsumersPage() {
  const consumers = useResource<Consumer[]>("consumers");
  return (
    <Page title={t("nav.consumers")} lead={t("consumers.lead")}>
      <Card flush>
        <Loaded of={consumers} icon="consumers" title={t("consumers.none")} help={t("consumers.none.help")}>
          {(rows) => (
            <Table
              label={t("nav.consumers")}
              rows={rows}
              id={(c) => c.name}
              to={(c) => to("/dead", { consumer: c.name })}
              columns={[
                {
                  name: t("col.name"),
                  cell: (c) => (
                    <div class="two sys-name">
                      <Link to={to("/dead", { consumer: c.name })}>
                        <Text value={c.name} />
                      </Link>
                      <span class="sys-narrow">
                        <Time at={c.last} />
                      </span>
                    </div>
                  ),
                },
                { name: t("col.status"), cell: (c) => <Health problems={c.problems} /> },
                {
                  name: t("col.last"),
                  num: true,
                  hide: "narrow",
                  cell: (c) => <Time at={c.last} />,
                  sort: (a, b) => (b.last ?? "").localeCompare(a.last ?? ""),
                },
                {
                  name: t("consumers.heard"),
                  num: true,
                  hide: "narrow",
                  cell: (c) => (
                    <span title={c.process}>
                      <Time at={c.heard} />
                    </span>
                  ),
                },
                { name: t("status.retry"), num: true, hide: "narrow", cell: (c) => <Deferred c={c} status="retry" /> },
                {
                  name: t("status.waiting"),
                  num: true,
                  hide: "narrow",
                  cell: (c) => <Deferred c={c} status="waiting" />,
                },
                {
                  name: t("status.scheduled"),
                  num: true,
                  hide: "medium",
                  cell: (c) => <Deferred c={c} status="scheduled" />,
                },
                {
                  name: t("status.parked"),
                  num: true,
                  hide: "medium",
                  cell: (c) => <Deferred c={c} status="parked" />,
                },
                {
                  name: t("col.blocked"),
                  num: true,
                  hide: "medium",
                  cell: (c) =>
                    c.deferred.blocked === 0 ? (
                      <Num n={0} dim />
                    ) : (
                      <Link to={to("/keys", { feed: `inbox/${c.name}` })} class="bad-text">
                        <Num n={c.deferred.blocked} capped />
                      </Link>
                    ),
                },
                {
                  name: t("col.dead"),
                  num: true,
                  cell: (c) => <Deferred c={c} status="dead" />,
                  sort: (a, b) => a.deferred.dead - b.deferred.dead,
                },
                { name: t("consumers.created"), num: true, hide: "medium", cell: (c) => <Time at={c.created} /> },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** How many a consumer has deferred in a status; a link if there is a list of them. */
function Deferred({ c, status }: { c: Consumer; status: "retry" | "waiting" | "scheduled" | "parked" | "dead" }) {
  const n = c.deferred[status];
  if (n === 0) return <Num n={0} dim />;
  return (
    <Link to={to("/dead", { consumer: c.name, status })} class={status === "dead" ? "bad-text" : undefined}>
      <Num n={n} capped />
    </Link>
  );
}
