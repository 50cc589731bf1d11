// The shards of a feed, drawn: a tile for each shard, with the slices of tenants below it.
import { useState } from "preact/hooks";
import type { Relay, Shard } from "../../api/types";
import { t } from "../../i18n";
import { absolute, duration, now, num, short } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import { Age, Card, Facts, Guess, Icon, Num, Table, Tabs, Text, Time } from "../../ui";

/** The lag of a shard: 0 none waiting, then below 2 s, 10 s and a minute, and 4 above. */
export function heat(shard: Shard, at: number): number {
  if (!shard.oldest || shard.pending.n === 0) return 0;
  const age = (at - Date.parse(shard.oldest)) / 1000;
  return age < 2 ? 1 : age < 10 ? 2 : age < 60 ? 3 : 4;
}

/** Relays get letters and colours in the order of their names, so that both stay the same between updates. */
export function marks(shards: Shard[], members: Relay[]): Map<string, number> {
  const names = new Set([...members.map((m) => m.name), ...shards.flatMap((l) => (l.holder ? [l.holder] : []))]);
  return new Map([...names].sort().map((name, i) => [name, i]));
}

const letter = (i: number) => (i < 26 ? String.fromCharCode(65 + i) : String(i + 1));

/** The shards. Those of a paused feed have no owner, which is not a problem. */
export function Shards({ shards, members, paused }: { shards: Shard[]; members: Relay[]; paused: boolean }) {
  const [chosen, choose] = useState<number | null>(null);
  const [lit, light] = useState<string | null>(null);
  const view = query.value.get("shards") === "table" ? "table" : "map";
  const who = marks(shards, members);
  const bases = shards.filter((l) => !l.tenant).sort((a, b) => a.shard - b.shard);
  const slices = (base: number) => shards.filter((l) => l.tenant && l.base === base);
  const one = shards.find((l) => l.shard === chosen);
  const orphans = shards.filter((l) => !l.holder).length;
  const tile = (l: Shard) => (
    <Tile
      key={l.shard}
      shard={l}
      calm={paused}
      mark={l.holder === undefined ? undefined : who.get(l.holder)}
      pressed={l.shard === chosen}
      dim={lit !== null && l.holder !== lit}
      onClick={() => choose(l.shard === chosen ? null : l.shard)}
    />
  );
  return (
    <Card
      title={t("shards.title")}
      actions={
        <Tabs
          label={t("shards.view")}
          value={view}
          items={[
            ["map", t("shards.map")],
            ["table", t("shards.table")],
          ]}
          onChange={(v) => setQuery({ shards: v === "table" ? v : undefined })}
        />
      }
    >
      {shards.length === 0 ? (
        <p class="muted">{t("shards.none")}</p>
      ) : view === "table" ? (
        <ShardTable shards={shards} />
      ) : (
        <div class="shards">
          <ul class={bases.length > 64 ? "shard-grid dense" : "shard-grid"}>
            {bases.map((l) => (
              <li class="shard-cell" key={l.shard}>
                {tile(l)}
                {slices(l.base).map(tile)}
              </li>
            ))}
          </ul>
          <div class="shard-legends">
            <ul class="shard-legend" aria-label={t("shards.holders")}>
              {[...who].map(([name, i]) => (
                <li key={name} onMouseEnter={() => light(name)} onMouseLeave={() => light(null)}>
                  <span class={`holder h${i % 8}`} aria-hidden="true">
                    {letter(i)}
                  </span>
                  <Text value={name} mono />
                  <span class="muted num">{num(shards.filter((l) => l.holder === name).length)}</span>
                </li>
              ))}
              {orphans > 0 && (
                <li class={paused ? "muted" : "bad-text"}>
                  <span class={paused ? "holder none calm" : "holder none"} aria-hidden="true">
                    {paused ? "–" : "!"}
                  </span>
                  {t("shards.nobody")}
                  <span class="num">{num(orphans)}</span>
                </li>
              )}
            </ul>
            <ul class="shard-legend heat-legend" aria-label={t("shards.heat")}>
              {(["shards.heat0", "shards.heat1", "shards.heat2", "shards.heat3", "shards.heat4"] as const).map(
                (key, i) => (
                  <li key={key}>
                    <span class={`heat heat${i}`} aria-hidden="true" />
                    {t(key)}
                  </li>
                ),
              )}
            </ul>
          </div>
          {one ? <ShardFacts shard={one} /> : <p class="help">{t("shards.hint")}</p>}
        </div>
      )}
    </Card>
  );
}

function Tile(p: { shard: Shard; calm: boolean; mark?: number; pressed: boolean; dim: boolean; onClick: () => void }) {
  const { shard } = p;
  const age =
    shard.oldest && shard.pending.n > 0 ? Math.max(0, (now.value - Date.parse(shard.oldest)) / 1000) : undefined;
  const label = [
    shard.tenant ? t("shards.slice", { n: shard.base, tenant: shard.tenant }) : t("shards.shard", { n: shard.shard }),
    shard.holder ?? t("shards.nobody"),
    t("shards.waiting", { n: shard.pending.n }),
    age !== undefined && duration(age),
    shard.crashes && t("shards.crashes", { n: shard.crashes }),
  ];
  return (
    <button
      type="button"
      class={`shard heat${heat(shard, now.value)}${shard.tenant ? " slice" : ""}${p.dim ? " dim" : ""}`}
      aria-pressed={p.pressed}
      aria-label={label.filter(Boolean).join(", ")}
      title={label.filter(Boolean).join("\n")}
      onClick={p.onClick}
    >
      <span class="shard-top">
        <span class={p.mark === undefined ? `holder none${p.calm ? " calm" : ""}` : `holder h${p.mark % 8}`}>
          {p.mark !== undefined ? letter(p.mark) : p.calm ? "–" : "!"}
        </span>
        <span class="shard-no cut">{shard.tenant ? <Text value={shard.tenant} /> : shard.shard}</span>
        {shard.crashes ? (
          <span class="bad-text shard-crash">
            <Icon name="bolt" size={12} />
          </span>
        ) : null}
      </span>
      <span class="shard-values">
        <span class="num">{short(shard.pending.n)}</span>
        <span class="num shard-age">{age === undefined ? "" : age < 1 ? "<1 s" : duration(Math.round(age))}</span>
      </span>
    </button>
  );
}

function ShardFacts({ shard }: { shard: Shard }) {
  return (
    <div class="shard-facts">
      <h3>
        {shard.tenant
          ? t("shards.slice", { n: shard.base, tenant: shard.tenant })
          : t("shards.shard", { n: shard.shard })}
      </h3>
      <Facts
        items={[
          [
            t("shards.holder"),
            shard.holder ? <Text value={shard.holder} mono /> : <span class="bad-text">{t("shards.nobody")}</span>,
          ],
          [t("shards.until"), shard.holder && shard.until && <Time at={shard.until} />],
          [t("col.pending"), <Guess value={shard.pending} key="p" />],
          [t("col.oldest"), shard.oldest && <Age at={shard.oldest} />],
          [
            t("shards.at"),
            <span title={absolute(Date.parse(shard.at))} key="t">
              <Time at={shard.at} />
            </span>,
          ],
          [t("shards.last"), <Num n={shard.last} key="l" />],
          [
            t("shards.crashed"),
            shard.crashes ? <span class="bad-text">{t("shards.crashed.help", { n: shard.crashes })}</span> : undefined,
          ],
        ]}
      />
    </div>
  );
}

function ShardTable({ shards }: { shards: Shard[] }) {
  const rows = [...shards].sort((a, b) => a.base - b.base || (a.tenant ?? "").localeCompare(b.tenant ?? ""));
  return (
    <Table
      label={t("shards.title")}
      rows={rows}
      id={(l) => String(l.shard)}
      columns={[
        {
          name: t("shards.column"),
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
        { name: t("shards.holder"), grow: true, hide: "narrow", cell: (l) => <Holder of={l} /> },
        {
          name: t("col.pending"),
          num: true,
          cell: (l) => <Guess value={l.pending} dim />,
          sort: (a, b) => a.pending.n - b.pending.n,
        },
        { name: t("col.oldest"), num: true, cell: (l) => <Age at={l.pending.n > 0 ? l.oldest : undefined} /> },
        { name: t("shards.last"), num: true, hide: "medium", cell: (l) => <Num n={l.last} /> },
        {
          name: t("shards.crashed"),
          num: true,
          hide: "narrow",
          cell: (l) => <Num n={l.crashes ?? 0} dim />,
          sort: (a, b) => (a.crashes ?? 0) - (b.crashes ?? 0),
        },
      ]}
    />
  );
}

function Holder({ of }: { of: Shard }) {
  return of.holder ? <Text value={of.holder} mono /> : <span class="bad-text">{t("shards.nobody")}</span>;
}
