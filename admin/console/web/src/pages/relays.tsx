// Relays: the processes that deliver messages, and the counters of those in this process.
import { segments } from "../api/client";
import { useResource } from "../api/resource";
import type { Relay, RelayStats } from "../api/types";
import { t } from "../i18n";
import { Age, Badge, Card, Link, Num, Page, Stat, Table, Text } from "../ui";
import { Heard, RelayName } from "./feeds/feed";
import { Loaded, ranges } from "./system";

export function RelaysPage() {
  const relays = useResource<Relay[]>("relays");
  const here = (relays.data ?? []).filter((r) => r.here && r.stats);
  return (
    <Page title={t("nav.relays")} lead={t("relays.lead")}>
      <Card flush>
        <Loaded of={relays} icon="relays" title={t("relays.none")} help={t("relays.none.help")}>
          {(rows) => (
            <Table
              label={t("nav.relays")}
              rows={[...rows].sort((a, b) => a.name.localeCompare(b.name) || a.feed.localeCompare(b.feed))}
              id={(r) => `${r.id} ${r.feed}`}
              to={(r) => `/feeds/${segments(r.feed)}`}
              columns={[
                {
                  name: t("col.name"),
                  cell: (r) => <RelayName of={r} />,
                },
                {
                  name: t("col.feed"),
                  cell: (r) => (
                    <Link to={`/feeds/${segments(r.feed)}`}>
                      <Text value={r.feed} />
                    </Link>
                  ),
                },
                {
                  name: t("relays.held"),
                  num: true,
                  cell: (r) => <Num n={r.shards.length} dim />,
                  sort: (a, b) => a.shards.length - b.shards.length,
                },
                {
                  name: t("relays.shards"),
                  grow: true,
                  hide: "medium",
                  cell: (r) => <span class="muted num">{ranges(r.shards) || t("relays.noshards")}</span>,
                },
                {
                  name: t("relays.heard"),
                  num: true,
                  cell: (r) => <Heard of={r} />,
                  sort: (a, b) => b.heard.localeCompare(a.heard),
                },
                {
                  name: t("relays.uptime"),
                  num: true,
                  hide: "narrow",
                  cell: (r) => <Age at={r.since} />,
                  sort: (a, b) => b.since.localeCompare(a.since),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      {here.map((r) => (
        <Counted key={r.feed} relay={r} stats={r.stats!} />
      ))}
    </Page>
  );
}

/** The counters of a relay of this process. */
function Counted({ relay, stats: s }: { relay: Relay; stats: RelayStats }) {
  const tone = (n: number, bad: "bad" | "warn") => (n > 0 ? bad : undefined);
  return (
    <section class="sys-section" aria-label={t("relays.stats", { feed: relay.feed })}>
      <header class="row">
        <h2>{t("relays.stats", { feed: relay.feed })}</h2>
        <span class="muted">
          {t("relays.since")} <Age at={relay.since} />
        </span>
        {s.paused && (
          <Badge icon="pause" tone="warn">
            {s.paused}
          </Badge>
        )}
        {s.failing > 0 && (
          <Badge icon="dead" tone="bad">
            {t("relays.failing", { n: s.failing })}
          </Badge>
        )}
      </header>
      <div class="stats sys-counts">
        <Stat label={t("relays.published")}>
          <Num n={s.published} compact />
        </Stat>
        <Stat label={t("relays.failed")} tone={tone(s.failed, "warn")}>
          <Num n={s.failed} compact />
        </Stat>
        <Stat label={t("relays.refused")} tone={tone(s.refused, "warn")}>
          <Num n={s.refused} compact />
        </Stat>
        <Stat label={t("relays.retried")}>
          <Num n={s.retried} compact />
        </Stat>
        <Stat label={t("relays.dead")} tone={tone(s.dead, "bad")}>
          <Num n={s.dead} compact />
        </Stat>
        <Stat label={t("relays.blocked")} tone={tone(s.blocked, "bad")}>
          <Num n={s.blocked} compact />
        </Stat>
        <Stat label={t("relays.buffered")}>
          <Num n={s.buffered} compact />
        </Stat>
        <Stat label={t("relays.quota")}>
          <Num n={s.shards} /> <span class="muted sys-of">/ {s.quota}</span>
        </Stat>
        <Stat label={t("relays.reads")}>
          <Num n={s.reads} compact />
        </Stat>
        <Stat label={t("relays.settles")}>
          <Num n={s.settles} compact />
        </Stat>
        <Stat label={t("relays.fenced")} tone={tone(s.fenced, "warn")}>
          <Num n={s.fenced} compact />
        </Stat>
        <Stat label={t("relays.resets")} tone={tone(s.resets, "warn")}>
          <Num n={s.resets} compact />
        </Stat>
      </div>
    </section>
  );
}
