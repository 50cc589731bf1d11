// Reconcilers: jobs that find messages that should have been sent, and send them.
import { segments, send } from "../api/client";
import { useResource } from "../api/resource";
import type { Done, Reconciler } from "../api/types";
import { t } from "../i18n";
import { duration, num } from "../lib/format";
import { Action, Badge, Card, Icon, Num, Page, Table, Text, Time } from "../ui";
import { forOperators, Loaded, plain, useCommand } from "./system";

export function ReconcilersPage() {
  const reconcilers = useResource<Reconciler[]>("reconcilers");
  const command = useCommand();
  const failed = (reconcilers.data ?? []).filter((p) => p.last.error);
  return (
    <Page title={t("nav.reconcilers")} lead={t("reconcilers.lead")}>
      {failed.map((p) => (
        <div class="notice bad" role="alert" key={p.job}>
          <Icon name="dead" />
          <div class="notice-body">
            <strong>{t("problem.reconciler_failed", { job: p.job })}</strong>
            <span class="mono">
              <Text value={p.last.error!} />
            </span>
          </div>
        </div>
      ))}
      <Card flush>
        <Loaded of={reconcilers} icon="reconcilers" title={t("reconcilers.none")} help={t("reconcilers.none.help")}>
          {(rows) => (
            <Table
              label={t("nav.reconcilers")}
              rows={rows}
              id={(p) => p.job}
              columns={[
                {
                  name: t("reconcilers.job"),
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
                { name: t("reconcilers.next"), num: true, hide: "narrow", cell: (p) => <Time at={p.next} /> },
                {
                  name: t("reconcilers.last"),
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
                  name: t("reconcilers.found"),
                  num: true,
                  hide: "narrow",
                  cell: (p) => <Counts found={p.last.found} fixed={p.last.fixed} />,
                },
                {
                  name: t("reconcilers.total"),
                  num: true,
                  hide: "medium",
                  cell: (p) => <Counts found={p.total.found} fixed={p.total.fixed} />,
                },
                {
                  name: t("reconcilers.runs"),
                  num: true,
                  hide: "medium",
                  cell: (p) => (
                    <span class="num">
                      <Num n={p.runs} dim />
                      {p.failed > 0 && <span class="muted"> · {t("reconcilers.failed", { n: p.failed })}</span>}
                    </span>
                  ),
                },
                ...forOperators<Reconciler>({
                  name: t("col.actions"),
                  num: true,
                  cell: (p) => (
                    <div class="cell-actions">
                      {p.holder ? null : p.can_run ? (
                        <Action
                          quiet
                          icon="play"
                          button={t("reconcilers.run")}
                          title={t("reconcilers.run.title", { job: p.job })}
                          text={t("reconcilers.run.text")}
                          run={(why) => plain(send<Done>("POST", `reconcilers/${segments(p.job)}/run`, { why }))}
                          command={(why) => command("reconcile run", [p.job], why)}
                          onDone={reconcilers.reload}
                        />
                      ) : (
                        <span class="faint" title={t("reconcilers.elsewhere.help")}>
                          {t("reconcilers.elsewhere")}
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

function took(p: Reconciler): string {
  if (!p.last.started || !p.last.finished) return "";
  return duration((Date.parse(p.last.finished) - Date.parse(p.last.started)) / 1000);
}

function State({ of: p }: { of: Reconciler }) {
  if (p.holder)
    return (
      <span title={p.holder}>
        <Badge tone="info" icon="play">
          {t("reconcilers.running")}
        </Badge>
      </span>
    );
  if (p.last.error)
    return (
      <Badge tone="bad" icon="dead">
        {t("reconcilers.error")}
      </Badge>
    );
  if (!p.last.finished) return <Badge icon="clock">{t("reconcilers.never")}</Badge>;
  return (
    <Badge tone="ok" icon="check">
      {t("reconcilers.ok")}
    </Badge>
  );
}

/** How many were found missing, and how many of them were sent. */
function Counts({ found, fixed }: { found: number; fixed: number }) {
  if (found === 0) return <span class="faint num">0</span>;
  return (
    <span class="num" title={t("reconcilers.counts", { found, fixed })}>
      {num(found)} → <span class={fixed < found ? "warn-text" : "sys-ok"}>{num(fixed)}</span>
    </span>
  );
}
