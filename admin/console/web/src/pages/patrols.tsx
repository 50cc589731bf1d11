// Patrol jobs: they look for messages that should have been sent, and send them.
import { segments, send } from "../api/client";
import { useResource } from "../api/resource";
import type { Done, Patrol } from "../api/types";
import { t } from "../i18n";
import { duration, num } from "../lib/format";
import { Action, Badge, Card, Icon, Num, Page, Table, Text, Time } from "../ui";
import { forOperators, Loaded, plain, useCommand } from "./system";

export function PatrolsPage() {
  const patrols = useResource<Patrol[]>("patrols");
  const command = useCommand();
  const failed = (patrols.data ?? []).filter((p) => p.last.error);
  return (
    <Page title={t("nav.patrols")} lead={t("patrols.lead")}>
      {failed.map((p) => (
        <div class="notice bad" role="alert" key={p.job}>
          <Icon name="dead" />
          <div class="notice-body">
            <strong>{t("problem.patrol_failed", { job: p.job })}</strong>
            <span class="mono">
              <Text value={p.last.error!} />
            </span>
          </div>
        </div>
      ))}
      <Card flush>
        <Loaded of={patrols} icon="patrols" title={t("patrols.none")} help={t("patrols.none.help")}>
          {(rows) => (
            <Table
              label={t("nav.patrols")}
              rows={rows}
              id={(p) => p.job}
              columns={[
                {
                  name: t("patrols.job"),
                  cell: (p) => (
                    <div class="two sys-name">
                      <strong>
                        <Text value={p.job} />
                      </strong>
                      <span class="mono">
                        <Text value={p.schedule} />
                      </span>
                    </div>
                  ),
                },
                { name: t("col.status"), cell: (p) => <State of={p} /> },
                { name: t("patrols.next"), num: true, hide: "narrow", cell: (p) => <Time at={p.next} /> },
                {
                  name: t("patrols.last"),
                  num: true,
                  hide: "narrow",
                  cell: (p) => (
                    <div class="two">
                      <Time at={p.last.finished ?? p.last.started} />
                      <span>{took(p)}</span>
                    </div>
                  ),
                },
                {
                  name: t("patrols.found"),
                  num: true,
                  hide: "narrow",
                  cell: (p) => <Counts found={p.last.found} fixed={p.last.fixed} />,
                },
                {
                  name: t("patrols.total"),
                  num: true,
                  hide: "medium",
                  cell: (p) => <Counts found={p.total.found} fixed={p.total.fixed} />,
                },
                {
                  name: t("patrols.runs"),
                  num: true,
                  hide: "medium",
                  cell: (p) => (
                    <span class="num">
                      <Num n={p.runs} dim />
                      {p.failed > 0 && <span class="muted"> · {t("patrols.failed", { n: p.failed })}</span>}
                    </span>
                  ),
                },
                ...forOperators<Patrol>({
                  name: t("col.actions"),
                  num: true,
                  cell: (p) => (
                    <div class="cell-actions">
                      {p.holder ? null : p.can_run ? (
                        <Action
                          quiet
                          icon="play"
                          button={t("patrols.run")}
                          title={t("patrols.run.title", { job: p.job })}
                          text={t("patrols.run.text")}
                          run={(why) => plain(send<Done>("POST", `patrols/${segments(p.job)}/run`, { why }))}
                          command={(why) => command("reconcile run", [p.job], why)}
                          onDone={patrols.reload}
                        />
                      ) : (
                        <span class="faint" title={t("patrols.elsewhere.help")}>
                          {t("patrols.elsewhere")}
                        </span>
                      )}
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

function took(p: Patrol): string {
  if (!p.last.started || !p.last.finished) return "";
  return duration((Date.parse(p.last.finished) - Date.parse(p.last.started)) / 1000);
}

function State({ of: p }: { of: Patrol }) {
  if (p.holder)
    return (
      <span title={p.holder}>
        <Badge tone="info" icon="play">
          {t("patrols.running")}
        </Badge>
      </span>
    );
  if (p.last.error)
    return (
      <Badge tone="bad" icon="dead">
        {t("patrols.error")}
      </Badge>
    );
  if (!p.last.finished) return <Badge icon="clock">{t("patrols.never")}</Badge>;
  return (
    <Badge tone="ok" icon="check">
      {t("patrols.ok")}
    </Badge>
  );
}

/** How many were found missing, and how many of them were sent. */
function Counts({ found, fixed }: { found: number; fixed: number }) {
  if (found === 0) return <span class="faint num">0</span>;
  return (
    <span class="num" title={t("patrols.counts", { found, fixed })}>
      {num(found)} → <span class={fixed < found ? "warn-text" : "sys-ok"}>{num(fixed)}</span>
    </span>
  );
}
