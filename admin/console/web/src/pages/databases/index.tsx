// Databases: health and capacity.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource";
import type { DatabaseHealth } from "../../api/types";
import { t } from "../../i18n";
import { bytes, num, percent } from "../../lib/format";
import { Badge, Card, Command, Facts, Icon, Num, Page, Progress, Table, Text, Time } from "../../ui";
import { Loaded } from "../system";
import { Ring } from "./ring";
import { Scale } from "./scale";

// The doctor's thresholds of warnings and problems.
const transaction: [number, number] = [300, 3600];
const connections = 0.8;
const wal = 2 ** 30;
const deadRows = 10_000;

const few = 8; // tables, as long as nobody wants to see all

export function DatabasesPage() {
  const all = useResource<DatabaseHealth[]>("databases");
  return (
    <Page title={t("nav.databases")} lead={t("databases.lead")}>
      <Loaded of={all} icon="databases" title={t("databases.none")} help={t("databases.none.help")} rows={10}>
        {(list) => (
          <>
            {list.map((v) => (
              <Database key={v.name} v={v} />
            ))}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Database({ v }: { v: DatabaseHealth }) {
  const title = (
    <header class="row sys-dbhead">
      <Icon name="databases" size={18} />
      <h2>
        <Text value={v.name} />
      </h2>
      {v.server && (
        <span class="muted">
          <Text value={v.server} />
        </span>
      )}
      {v.schema && (
        <span class="muted">
          {t("databases.schema")} <Text value={v.schema} mono /> · {t("databases.version", { n: v.version })}
        </span>
      )}
    </header>
  );
  if (v.error)
    return (
      <section class="sys-section">
        {title}
        <div class="notice bad" role="alert">
          <Icon name="dead" />
          <div class="notice-body">
            <strong>{t("problem.unreachable", { database: v.name })}</strong>
            <Text value={v.error} />
            <Command text="postrider doctor" />
          </div>
        </div>
      </section>
    );
  if (!v.server)
    return (
      <section class="sys-section">
        {title}
        <p class="muted">{t("databases.nohealth")}</p>
      </section>
    );
  const share = v.max_connections > 0 ? v.connections / v.max_connections : 0;
  return (
    <section class="sys-section" aria-label={v.name}>
      {title}
      <div class="sys-health">
        <Card title={t("databases.ring")}>
          <Ring capacity={v.capacity} />
        </Card>
        <Card title={t("databases.age")}>
          <div class="stack">
            <Scale
              label={t("databases.transaction")}
              help={t("databases.transaction.help")}
              value={v.oldest_transaction}
              limits={transaction}
            />
            <Scale
              label={t("databases.snapshot")}
              help={t("databases.snapshot.help")}
              value={v.oldest_snapshot}
              limits={transaction}
            />
          </div>
        </Card>
        <Card title={t("databases.connections")}>
          <div class="stack">
            <div class="sys-meter">
              <span class={share >= connections ? "sys-big warn-text" : "sys-big"}>
                {num(v.connections)} <span class="muted sys-of">/ {num(v.max_connections)}</span>
              </span>
              <Progress
                value={v.connections}
                max={v.max_connections}
                label={t("databases.connections")}
                tone={share >= 0.95 ? "bad" : share >= connections ? "warn" : undefined}
              />
              {share >= connections && (
                <p class="help warn-text">{t("databases.connections.warn", { share: percent(share) })}</p>
              )}
            </div>
            <Facts
              items={[
                [t("databases.size"), bytes(v.size)],
                [
                  t("databases.dedup"),
                  v.dedup_keys > 0 && (
                    <>
                      ≈ <Num n={v.dedup_keys} compact />
                    </>
                  ),
                ],
                [
                  t("databases.idempotency"),
                  v.idempotency_keys > 0 && (
                    <>
                      ≈ <Num n={v.idempotency_keys} compact />
                    </>
                  ),
                ],
              ]}
            />
          </div>
        </Card>
      </div>
      <Tables v={v} />
      {v.slots.length > 0 && <Slots v={v} />}
    </section>
  );
}

function Tables({ v }: { v: DatabaseHealth }) {
  const [all, setAll] = useState(false);
  const most = Math.max(1, ...v.tables.map((x) => x.bytes));
  const bloated = (x: DatabaseHealth["tables"][0]) => x.dead_rows > deadRows && x.dead_rows > x.rows / 2;
  if (v.tables.length === 0) return null;
  return (
    <Card title={t("databases.tables")} flush>
      <Table
        label={t("databases.tables")}
        rows={all ? v.tables : v.tables.slice(0, few)}
        id={(x) => x.name}
        columns={[
          { name: t("col.name"), cell: (x) => <Text value={x.name} mono /> },
          {
            name: t("databases.part"),
            grow: true,
            cell: (x) => <Progress value={x.bytes} max={most} label={`${x.name}: ${bytes(x.bytes)}`} />,
          },
          {
            name: t("col.size"),
            num: true,
            cell: (x) => <span class="num">{bytes(x.bytes)}</span>,
            sort: (a, b) => a.bytes - b.bytes,
          },
          {
            name: t("databases.rows"),
            num: true,
            hide: "narrow",
            cell: (x) => <Num n={x.rows} compact dim />,
            sort: (a, b) => a.rows - b.rows,
          },
          {
            name: t("databases.dead"),
            num: true,
            hide: "narrow",
            cell: (x) =>
              bloated(x) ? (
                <span class="warn-text" title={t("databases.bloat")}>
                  <Icon name="dead" size={12} /> <Num n={x.dead_rows} compact />
                </span>
              ) : (
                <Num n={x.dead_rows} compact dim />
              ),
            sort: (a, b) => a.dead_rows - b.dead_rows,
          },
          { name: t("databases.vacuum"), num: true, hide: "medium", cell: (x) => <Time at={x.last_vacuum} /> },
        ]}
      />
      {v.tables.length > few && (
        <div class="sys-all">
          <button type="button" class="ghost" aria-expanded={all} onClick={() => setAll(!all)}>
            <Icon name={all ? "up" : "down"} size={12} />
            {all ? t("databases.fewer") : t("databases.all", { n: v.tables.length })}
          </button>
        </div>
      )}
    </Card>
  );
}

function Slots({ v }: { v: DatabaseHealth }) {
  return (
    <Card title={t("databases.slots")} flush>
      <Table
        label={t("databases.slots")}
        rows={v.slots}
        id={(s) => s.name}
        columns={[
          { name: t("col.name"), grow: true, cell: (s) => <Text value={s.name} mono /> },
          {
            name: t("col.status"),
            cell: (s) =>
              s.active ? (
                <Badge tone="ok" icon="check">
                  {t("databases.slot.active")}
                </Badge>
              ) : (
                <Badge tone={s.bytes > wal ? "bad" : "warn"} icon="pause">
                  {t("databases.slot.idle")}
                </Badge>
              ),
          },
          {
            name: t("databases.slot.bytes"),
            num: true,
            cell: (s) => (
              <span
                class={s.bytes > wal ? "bad-text num" : "num"}
                title={s.bytes > wal ? t("databases.slot.warn") : undefined}
              >
                {bytes(s.bytes)}
              </span>
            ),
          },
        ]}
      />
    </Card>
  );
}
