import { segments } from "../../api/client";
import { history } from "../../api/live";
import type { Consumer, Feed } from "../../api/types";
import { t } from "../../i18n";
import { rate } from "../../lib/format";
import { Age, Badge, Card, Guess, Link, Num, Rate, Spark, Table, Text, Time } from "../../ui";

function Health({ bad, paused }: { bad: boolean; paused?: boolean }) {
  if (paused) return <Badge icon="pause">{t("feed.paused")}</Badge>;
  if (bad) {
    return (
      <Badge tone="bad" icon="dead">
        {t("feed.problem")}
      </Badge>
    );
  }
  return (
    <Badge tone="ok" icon="check">
      {t("feed.ok")}
    </Badge>
  );
}

export function FeedsTable({ feeds }: { feeds: Feed[] }) {
  return (
    <Card flush title={t("overview.feeds")}>
      <Table
        label={t("overview.feeds")}
        rows={feeds}
        id={(f) => f.name}
        to={(f) => `/feeds/${segments(f.name)}`}
        columns={[
          {
            name: t("col.name"),
            grow: true,
            cell: (f) => (
              <Link to={`/feeds/${segments(f.name)}`}>
                <Text value={f.name} />
              </Link>
            ),
          },
          { name: t("col.status"), cell: (f) => <Health bad={f.problems.length > 0} paused={f.paused} /> },
          {
            name: t("col.trend"),
            hide: "narrow",
            cell: (f) => <Spark values={history.value.get(f.name) ?? []} label={`${rate(f.rate ?? 0)}/s`} />,
          },
          { name: t("col.rate"), num: true, hide: "narrow", cell: (f) => <Rate n={f.rate} /> },
          { name: t("col.pending"), num: true, cell: (f) => <Guess value={f.pending} dim /> },
          { name: t("col.oldest"), num: true, hide: "narrow", cell: (f) => <Age at={f.oldest} /> },
          { name: t("col.dead"), num: true, hide: "medium", cell: (f) => <Num n={f.deferred.dead} dim capped /> },
          { name: t("col.blocked"), num: true, hide: "medium", cell: (f) => <Num n={f.deferred.blocked} dim capped /> },
          { name: t("col.relays"), num: true, hide: "medium", cell: (f) => <Num n={f.relays} /> },
        ]}
      />
    </Card>
  );
}

export function ConsumersTable({ consumers }: { consumers: Consumer[] }) {
  return (
    <Card flush title={t("overview.consumers")}>
      <Table
        label={t("overview.consumers")}
        rows={consumers}
        id={(c) => c.name}
        to={() => "/consumers"}
        columns={[
          { name: t("col.name"), grow: true, cell: (c) => <Text value={c.name} /> },
          { name: t("col.status"), cell: (c) => <Health bad={c.problems.length > 0} /> },
          { name: t("col.last"), num: true, hide: "narrow", cell: (c) => <Time at={c.last} /> },
          { name: t("col.dead"), num: true, cell: (c) => <Num n={c.deferred.dead} dim capped /> },
          { name: t("col.blocked"), num: true, cell: (c) => <Num n={c.deferred.blocked} dim capped /> },
        ]}
      />
    </Card>
  );
}
