// The lanes of a feed, drawn: a tile for each shard, with the parts of tenants that have a lane of their own below it.
import { useState } from "preact/hooks";
import type { Lane, Relay } from "../../api/types";
import { t } from "../../i18n";
import { absolute, duration, now, num, short } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import { Age, Card, Facts, Guess, Icon, Num, Table, Tabs, Text, Time } from "../../ui";

/** The lag of a lane: 0 none waiting, then below 2 s, 10 s and a minute, and 4 above. */
export function heat(lane: Lane, at: number): number {
  if (!lane.oldest || lane.pending.n === 0) return 0;
  const age = (at - Date.parse(lane.oldest)) / 1000;
  return age < 2 ? 1 : age < 10 ? 2 : age < 60 ? 3 : 4;
}

/** Relays get letters and colours in the order of their names, so that both stay the same between updates. */
export function marks(lanes: Lane[], members: Relay[]): Map<string, number> {
  const names = new Set([...members.map((m) => m.name), ...lanes.flatMap((l) => (l.holder ? [l.holder] : []))]);
  return new Map([...names].sort().map((name, i) => [name, i]));
}

const letter = (i: number) => (i < 26 ? String.fromCharCode(65 + i) : String(i + 1));

/** The lanes. Those of a paused feed have no owner, which is not a problem. */
export function Lanes({ lanes, members, paused }: { lanes: Lane[]; members: Relay[]; paused: boolean }) {
  const [chosen, choose] = useState<number | null>(null);
  const [lit, light] = useState<string | null>(null);
  const view = query.value.get("lanes") === "table" ? "table" : "map";
  const who = marks(lanes, members);
  const bases = lanes.filter((l) => !l.tenant).sort((a, b) => a.shard - b.shard);
  const slices = (base: number) => lanes.filter((l) => l.tenant && l.base === base);
  const one = lanes.find((l) => l.shard === chosen);
  const orphans = lanes.filter((l) => !l.holder).length;
  const tile = (l: Lane) => (
    <Tile
      key={l.shard}
      lane={l}
      calm={paused}
      mark={l.holder === undefined ? undefined : who.get(l.holder)}
      pressed={l.shard === chosen}
      dim={lit !== null && l.holder !== lit}
      onClick={() => choose(l.shard === chosen ? null : l.shard)}
    />
  );
  return (
    <Card
      title={t("lanes.title")}
      actions={
        <Tabs
          label={t("lanes.view")}
          value={view}
          items={[
            ["map", t("lanes.map")],
            ["table", t("lanes.table")],
          ]}
          onChange={(v) => setQuery({ lanes: v === "table" ? v : undefined })}
        />
      }
    >
      {lanes.length === 0 ? (
        <p class="muted">{t("lanes.none")}</p>
      ) : view === "table" ? (
        <LaneTable lanes={lanes} />
      ) : (
        <div class="lanes">
          <ul class={bases.length > 64 ? "lane-grid dense" : "lane-grid"}>
            {bases.map((l) => (
              <li class="lane-cell" key={l.shard}>
                {tile(l)}
                {slices(l.base).map(tile)}
              </li>
            ))}
          </ul>
          <div class="lane-legends">
            <ul class="lane-legend" aria-label={t("lanes.holders")}>
              {[...who].map(([name, i]) => (
                <li key={name} onMouseEnter={() => light(name)} onMouseLeave={() => light(null)}>
                  <span class={`holder h${i % 8}`} aria-hidden="true">
                    {letter(i)}
                  </span>
                  <Text value={name} mono />
                  <span class="muted num">{num(lanes.filter((l) => l.holder === name).length)}</span>
                </li>
              ))}
              {orphans > 0 && (
                <li class={paused ? "muted" : "bad-text"}>
                  <span class={paused ? "holder none calm" : "holder none"} aria-hidden="true">
                    {paused ? "–" : "!"}
                  </span>
                  {t("lanes.nobody")}
                  <span class="num">{num(orphans)}</span>
                </li>
              )}
            </ul>
            <ul class="lane-legend heat-legend" aria-label={t("lanes.heat")}>
              {(["lanes.heat0", "lanes.heat1", "lanes.heat2", "lanes.heat3", "lanes.heat4"] as const).map((key, i) => (
                <li key={key}>
                  <span class={`heat heat${i}`} aria-hidden="true" />
                  {t(key)}
                </li>
              ))}
            </ul>
          </div>
          {one ? <LaneFacts lane={one} /> : <p class="help">{t("lanes.hint")}</p>}
        </div>
      )}
    </Card>
  );
}

function Tile(p: { lane: Lane; calm: boolean; mark?: number; pressed: boolean; dim: boolean; onClick: () => void }) {
  const { lane } = p;
  const age = lane.oldest && lane.pending.n > 0 ? Math.max(0, (now.value - Date.parse(lane.oldest)) / 1000) : undefined;
  const label = [
    lane.tenant ? t("lanes.slice", { n: lane.base, tenant: lane.tenant }) : t("lanes.shard", { n: lane.shard }),
    lane.holder ?? t("lanes.nobody"),
    t("lanes.waiting", { n: lane.pending.n }),
    age !== undefined && duration(age),
    lane.crashes && t("lanes.crashes", { n: lane.crashes }),
  ];
  return (
    <button
      type="button"
      class={`lane heat${heat(lane, now.value)}${lane.tenant ? " slice" : ""}${p.dim ? " dim" : ""}`}
      aria-pressed={p.pressed}
      aria-label={label.filter(Boolean).join(", ")}
      title={label.filter(Boolean).join("\n")}
      onClick={p.onClick}
    >
      <span class="lane-top">
        <span class={p.mark === undefined ? `holder none${p.calm ? " calm" : ""}` : `holder h${p.mark % 8}`}>
          {p.mark !== undefined ? letter(p.mark) : p.calm ? "–" : "!"}
        </span>
        <span class="lane-no cut">{lane.tenant ? <Text value={lane.tenant} /> : lane.shard}</span>
        {lane.crashes ? (
          <span class="bad-text lane-crash">
            <Icon name="bolt" size={12} />
          </span>
        ) : null}
      </span>
      <span class="lane-values">
        <span class="num">{short(lane.pending.n)}</span>
        <span class="num lane-age">{age === undefined ? "" : age < 1 ? "<1 s" : duration(Math.round(age))}</span>
      </span>
    </button>
  );
}

function LaneFacts({ lane }: { lane: Lane }) {
  return (
    <div class="lane-facts">
      <h3>
        {lane.tenant ? t("lanes.slice", { n: lane.base, tenant: lane.tenant }) : t("lanes.shard", { n: lane.shard })}
      </h3>
      <Facts
        items={[
          [
            t("lanes.holder"),
            lane.holder ? <Text value={lane.holder} mono /> : <span class="bad-text">{t("lanes.nobody")}</span>,
          ],
          [t("lanes.until"), lane.holder && lane.until && <Time at={lane.until} />],
          [t("col.pending"), <Guess value={lane.pending} key="p" />],
          [t("col.oldest"), lane.oldest && <Age at={lane.oldest} />],
          [
            t("lanes.at"),
            <span title={absolute(Date.parse(lane.at))} key="t">
              <Time at={lane.at} />
            </span>,
          ],
          [t("lanes.last"), <Num n={lane.last} key="l" />],
          [
            t("lanes.crashed"),
            lane.crashes ? <span class="bad-text">{t("lanes.crashed.help", { n: lane.crashes })}</span> : undefined,
          ],
        ]}
      />
    </div>
  );
}

function LaneTable({ lanes }: { lanes: Lane[] }) {
  const rows = [...lanes].sort((a, b) => a.base - b.base || (a.tenant ?? "").localeCompare(b.tenant ?? ""));
  return (
    <Table
      label={t("lanes.title")}
      rows={rows}
      id={(l) => String(l.shard)}
      columns={[
        {
          name: t("lanes.column"),
          cell: (l) => (
            <div class="two">
              {l.tenant ? (
                <span class="muted">
                  {l.base} · <Text value={l.tenant} />
                </span>
              ) : (
                <span class="num">{l.shard}</span>
              )}
              <span class="sys-narrow">
                <Holder of={l} />
              </span>
            </div>
          ),
        },
        { name: t("lanes.holder"), grow: true, hide: "narrow", cell: (l) => <Holder of={l} /> },
        {
          name: t("col.pending"),
          num: true,
          cell: (l) => <Guess value={l.pending} dim />,
          sort: (a, b) => a.pending.n - b.pending.n,
        },
        { name: t("col.oldest"), num: true, cell: (l) => <Age at={l.pending.n > 0 ? l.oldest : undefined} /> },
        { name: t("lanes.last"), num: true, hide: "medium", cell: (l) => <Num n={l.last} /> },
        {
          name: t("lanes.crashed"),
          num: true,
          hide: "narrow",
          cell: (l) => <Num n={l.crashes ?? 0} dim />,
          sort: (a, b) => (a.crashes ?? 0) - (b.crashes ?? 0),
        },
      ]}
    />
  );
}

function Holder({ of }: { of: Lane }) {
  return of.holder ? <Text value={of.holder} mono /> : <span class="bad-text">{t("lanes.nobody")}</span>;
}
