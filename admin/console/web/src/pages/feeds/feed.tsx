import { segments } from "../../api/client";
import { useResource } from "../../api/resource";
import type { FeedDetail, Outage, Relay } from "../../api/types";
import { t } from "../../i18n";
import { now } from "../../lib/format";
import { to } from "../../lib/router";
import { Age, Card, Facts, Guess, Link, Num, Page, Rate, Stat, Table, Text, Time } from "../../ui";
import { Health, Loaded, ranges, Troubles } from "../system";
import { PauseFeed, RemoveFeed, RewindFeed } from "./actions";
import { Shards } from "./shards";

/** A feed: its shards with their owners and positions. */
export function FeedPage({ name }: { name: string }) {
  const feed = useResource<FeedDetail>(`feeds/${segments(name)}`);
  const f = feed.data;
  return (
    <Page
      title={name}
      lead={
        <span class="row">
          <Link to="/feeds">{t("nav.feeds")}</Link>
          {f && <Health paused={f.paused} problems={f.problems} />}
          {f?.to && (
            <span class="mono">
              → <Text value={f.to} />
            </span>
          )}
        </span>
      }
      actions={
        f && (
          <>
            <PauseFeed feed={f} onDone={feed.reload} />
            <RewindFeed name={name} onDone={feed.reload} />
            <RemoveFeed name={name} />
          </>
        )
      }
    >
      <Loaded of={feed} icon="feeds" title="" rows={10}>
        {(f) => (
          <>
            <Troubles of={f.problems} />
            <div class="stats">
              <Stat label={t("col.pending")} to={to("/messages", { feed: name, status: "pending" })}>
                <Guess value={f.pending} />
              </Stat>
              <Stat label={t("col.oldest")}>
                <Age at={f.oldest} />
              </Stat>
              <Stat label={t("col.rate")}>
                <Rate n={f.rate} />
              </Stat>
              <Stat label={t("col.relays")} tone={f.relays === 0 ? "bad" : undefined}>
                <Num n={f.relays} />
              </Stat>
              <Stat
                label={t("col.dead")}
                tone={f.deferred.dead > 0 ? "bad" : undefined}
                to={f.deferred.dead > 0 ? to("/dead", { feed: name }) : undefined}
              >
                <Num n={f.deferred.dead} capped />
              </Stat>
              <Stat
                label={t("col.blocked")}
                tone={f.deferred.blocked > 0 ? "bad" : undefined}
                to={f.deferred.blocked > 0 ? to("/keys", { feed: name }) : undefined}
              >
                <Num n={f.deferred.blocked} capped />
              </Stat>
            </div>
            {f.outages.length > 0 && (
              <Card title={t("outages.title")} flush>
                <Outages rows={f.outages} />
              </Card>
            )}
            <Shards shards={f.shards} members={f.members} paused={f.paused} />
            <div class="sys-split">
              <Card title={t("feeds.members")} flush>
                <Members rows={f.members} />
              </Card>
              <Card title={t("feeds.state")}>
                <Facts
                  items={[
                    [t("feeds.settled"), f.settled && <Time at={f.settled} />],
                    [t("feeds.canary"), f.canary && <Time at={f.canary} />],
                    [t("status.scheduled"), f.deferred.scheduled > 0 && <Num n={f.deferred.scheduled} capped />],
                    [t("status.retry"), f.deferred.retry > 0 && <Num n={f.deferred.retry} capped />],
                    [t("status.held"), f.deferred.held > 0 && <Num n={f.deferred.held} capped />],
                    [t("status.waiting"), f.deferred.waiting > 0 && <Num n={f.deferred.waiting} capped />],
                    [t("status.parked"), f.deferred.parked > 0 && <Num n={f.deferred.parked} capped />],
                    [
                      t("nav.audit"),
                      <Link to={to("/audit", { feed: name })} key="a">
                        {t("feeds.history")}
                      </Link>,
                    ],
                  ]}
                />
              </Card>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Outages({ rows }: { rows: Outage[] }) {
  return (
    <Table
      label={t("outages.title")}
      rows={rows}
      id={(o) => o.name}
      columns={[
        {
          name: t("outages.name"),
          cell: (o) => (o.name ? <Text value={o.name} mono /> : <span class="muted">{t("outages.all")}</span>),
        },
        { name: t("col.error"), grow: true, cell: (o) => <Text value={o.cause} /> },
        { name: t("outages.failures"), num: true, cell: (o) => <Num n={o.failures} /> },
        { name: t("outages.since"), num: true, cell: (o) => <Time at={o.since} /> },
        {
          name: t("outages.over"),
          num: true,
          cell: (o) => (o.over ? <Time at={o.over} /> : <span class="bad-text">{t("outages.open")}</span>),
        },
      ]}
    />
  );
}

function Members({ rows }: { rows: Relay[] }) {
  if (rows.length === 0) return <p class="sys-note bad-text">{t("feeds.nomembers")}</p>;
  return (
    <Table
      label={t("feeds.members")}
      rows={rows}
      id={(m) => m.id}
      columns={[
        {
          name: t("col.name"),
          cell: (m) => <RelayName of={m} />,
        },
        { name: t("relays.shards"), cell: (m) => <span class="sys-wrap">{ranges(m.shards) || "–"}</span> },
        { name: t("relays.heard"), num: true, cell: (m) => <Heard of={m} /> },
        { name: t("relays.uptime"), num: true, hide: "narrow", cell: (m) => <Age at={m.since} /> },
      ]}
    />
  );
}

/** The name of a relay, and whether it is one of this process. */
export function RelayName({ of }: { of: Relay }) {
  return (
    <div class="two sys-name">
      <Text value={of.name} mono />
      {of.here && <span class="sys-here">{t("relays.here")}</span>}
    </div>
  );
}

/** The last heartbeat of a relay, coloured if its lease has expired. */
export function Heard({ of }: { of: Relay }) {
  const over = Date.parse(of.until) < now.value;
  return (
    <span class={over ? "bad-text" : undefined} title={over ? t("relays.silent") : undefined}>
      <Time at={of.heard} />
    </span>
  );
}
