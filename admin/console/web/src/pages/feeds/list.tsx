import { segments } from "../../api/client";
import { history } from "../../api/live";
import { useResource } from "../../api/resource";
import type { Feed } from "../../api/types";
import { t } from "../../i18n";
import { to } from "../../lib/router";
import { Age, Card, Guess, Link, Num, Page, Rate, Spark, Table, Text } from "../../ui";
import { forOperators, Health, Loaded } from "../system";
import { AddFeed, PauseFeed } from "./actions";

/** All feeds. */
export function FeedsPage() {
  const feeds = useResource<Feed[]>("feeds");
  const old = (f: Feed) => (f.oldest ? Date.parse(f.oldest) : Number.MAX_SAFE_INTEGER);
  return (
    <Page title={t("nav.feeds")} lead={t("feeds.lead")} actions={<AddFeed onDone={feeds.reload} />}>
      <Card flush>
        <Loaded of={feeds} icon="feeds" title={t("overview.nofeeds")} help={t("overview.nofeeds.help")}>
          {(rows) => (
            <Table
              label={t("nav.feeds")}
              rows={rows}
              id={(f) => f.name}
              to={(f) => `/feeds/${segments(f.name)}`}
              columns={[
                {
                  name: t("col.name"),
                  cell: (f) => (
                    <div class="two sys-name">
                      <Link to={`/feeds/${segments(f.name)}`}>
                        <Text value={f.name} />
                      </Link>
                      <span>{f.to ? <Text value={f.to} mono /> : t("feeds.elsewhere")}</span>
                    </div>
                  ),
                },
                { name: t("col.status"), cell: (f) => <Health paused={f.paused} problems={f.problems} /> },
                { name: t("col.relays"), num: true, hide: "narrow", cell: (f) => <Relays n={f.relays} /> },
                {
                  name: t("col.pending"),
                  num: true,
                  cell: (f) => <Guess value={f.pending} dim />,
                  sort: (a, b) => a.pending.n - b.pending.n,
                },
                {
                  name: t("col.oldest"),
                  num: true,
                  hide: "narrow",
                  cell: (f) => <Age at={f.oldest} />,
                  sort: (a, b) => old(b) - old(a),
                },
                {
                  name: t("col.dead"),
                  num: true,
                  hide: "narrow",
                  cell: (f) => <Some n={f.deferred.dead} to={to("/dead", { feed: f.name })} />,
                  sort: (a, b) => a.deferred.dead - b.deferred.dead,
                },
                {
                  name: t("col.blocked"),
                  num: true,
                  hide: "medium",
                  cell: (f) => <Some n={f.deferred.blocked} to={to("/keys", { feed: f.name })} />,
                },
                {
                  name: t("col.rate"),
                  num: true,
                  hide: "narrow",
                  cell: (f) => <Rate n={f.rate} />,
                  sort: (a, b) => (a.rate ?? 0) - (b.rate ?? 0),
                },
                {
                  name: t("col.trend"),
                  hide: "medium",
                  cell: (f) => (
                    <Spark values={history.value.get(f.name) ?? []} label={t("feeds.trend", { name: f.name })} />
                  ),
                },
                ...forOperators<Feed>({
                  name: t("col.actions"),
                  num: true,
                  hide: "medium",
                  cell: (f) => (
                    <div class="cell-actions">
                      <PauseFeed feed={f} quiet onDone={feeds.reload} />
                    </div>
                  ),
                }),
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** A number with a link unless it is zero. */
function Some({ n, to }: { n: number; to: string }) {
  if (n === 0) return <Num n={0} dim />;
  return (
    <Link to={to} class="bad-text">
      <Num n={n} capped />
    </Link>
  );
}

function Relays({ n }: { n: number }) {
  return n === 0 ? <span class="bad-text num">0</span> : <Num n={n} />;
}
