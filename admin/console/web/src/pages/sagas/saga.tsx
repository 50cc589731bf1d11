import { useState } from "preact/hooks";
import { segments, send } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Done, Saga, SagaStep } from "../../api/types";
import { t } from "../../i18n";
import { now } from "../../lib/format";
import { to } from "../../lib/router";
import {
  Action,
  Badge,
  Card,
  Command,
  Empty,
  Facts,
  Icon,
  type IconName,
  Link,
  Num,
  Page,
  Payload,
  Text,
  Time,
} from "../../ui";
import { Loaded, plain, useCommand } from "../system";
import { Graph } from "./graph";
import { Took } from "./list";
import { SagaBadge, stepLook, stepWord } from "./state";

type Act = "retry" | "skip" | "compensate";
const from: Record<Act, Saga["status"][]> = {
  retry: ["running", "compensating", "stuck"],
  skip: ["running", "waiting", "compensating", "stuck"],
  compensate: ["running", "waiting"],
};
const icons: Record<Act, IconName> = { retry: "retry", skip: "skip", compensate: "replays" };

/** A saga: its steps as a graph, its data, and what can be done. */
export function SagaPage({ name, id }: { name: string; id: string }) {
  const saga = useResource<Saga>(`sagas/${segments(name, id)}`);
  const [chosen, choose] = useState<string>();
  const s = saga.data;
  const shown = s && (s.steps.find((x) => x.name === chosen) ?? worst(s));
  return (
    <Page
      title={id}
      lead={
        <span class="row">
          <Link to={to("/sagas", { name })}>
            <Text value={name} />
          </Link>
          {s && <SagaBadge value={s.status} />}
        </span>
      }
      actions={
        s && (
          <>
            {s.steps.some((x) => failing(x)) && <Do act="retry" saga={s} onDone={saga.reload} />}
            <Do act="compensate" saga={s} onDone={saga.reload} />
          </>
        )
      }
    >
      <Loaded of={saga} icon="sagas" title="" rows={10}>
        {(s) => (
          <>
            {s.cause && (
              <div class={`notice ${s.status === "stuck" ? "bad" : s.finished ? "" : "warn"}`}>
                <Icon name="dead" />
                <div class="notice-body">
                  <strong>{t("sagas.givenup")}</strong>
                  <Text value={s.cause} />
                </div>
              </div>
            )}
            <Card title={t("sagas.steps")} actions={<span class="muted">{t("sagas.clickstep")}</span>}>
              {s.steps.length === 0 ? (
                <Empty title={t("sagas.nosteps")} />
              ) : (
                <Graph saga={s} chosen={shown?.name} onChoose={choose} />
              )}
            </Card>
            <div class="sys-split even">
              {shown && <Step saga={s} step={shown} onDone={saga.reload} />}
              <div class="stack">
                <Card title={t("message.details")}>
                  <Facts
                    items={[
                      [t("sagas.started"), <Time at={s.started} key="s" />],
                      [t("sagas.finished"), s.finished && <Time at={s.finished} />],
                      [t("sagas.took"), <Took of={s} key="t" />],
                      [
                        t("sagas.signals"),
                        s.signals.length > 0 && (
                          <ul class="sys-list">
                            {s.signals.map((x) => (
                              <li key={`${x.name} ${x.at}`}>
                                <Text value={x.name} mono />{" "}
                                <span class="muted">
                                  <Time at={x.at} />
                                </span>
                              </li>
                            ))}
                          </ul>
                        ),
                      ],
                    ]}
                  />
                  <div class="sys-below">
                    <Command text={s.command} />
                  </div>
                </Card>
                <Card title={t("sagas.data")}>
                  {s.data ? <Payload value={s.data} /> : <p class="muted">{t("sagas.nodata")}</p>}
                </Card>
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The step to show first. */
function worst(s: Saga): SagaStep | undefined {
  return (
    s.steps.find((x) => x.state === "stuck") ??
    s.steps.find((x) => x.current) ??
    s.steps.find((x) => x.error) ??
    s.steps.at(-1)
  );
}

function failing(s: SagaStep): boolean {
  return s.state === "stuck" || (s.attempts > 0 && (s.state === "ready" || s.state === "undoing"));
}

function Step({ saga, step, onDone }: { saga: Saga; step: SagaStep; onDone: () => void }) {
  const [tone, icon] = stepLook(step);
  const late = step.due !== undefined && Date.parse(step.due) < now.value;
  return (
    <Card
      title={<Text value={step.name} />}
      actions={
        <>
          {failing(step) && <Do act="retry" saga={saga} step={step.name} onDone={onDone} quiet />}
          {(failing(step) || step.state === "waiting") && (
            <Do act="skip" saga={saga} step={step.name} onDone={onDone} quiet />
          )}
        </>
      }
    >
      <div class="stack">
        <Facts
          items={[
            [
              t("col.status"),
              <Badge tone={tone} icon={icon} key="b">
                {stepWord(step)}
              </Badge>,
            ],
            [t("sagas.attempts"), step.attempts > 0 && <Num n={step.attempts} />],
            [t("sagas.due"), step.current && step.due && (late ? t("sagas.due.now") : <Time at={step.due} />)],
            [t("sagas.reached"), step.started && <Time at={step.started} exact />],
            [t("sagas.ended"), step.finished && <Time at={step.finished} exact />],
            [t("sagas.after"), step.after.length > 0 && step.after.join(", ")],
            [t("sagas.undo"), t(step.compensates ? "sagas.undo.yes" : "sagas.undo.no")],
          ]}
        />
        {step.error && (
          <div class="sys-errtext">
            <span class="muted">{t("col.error")}</span>
            <pre class="mono">
              <Text value={step.error} />
            </pre>
          </div>
        )}
      </div>
    </Card>
  );
}

/** A button for an action on a saga or a step; absent if the saga's status does not allow it. */
function Do({
  act,
  saga,
  step,
  quiet,
  onDone,
}: {
  act: Act;
  saga: Saga;
  step?: string;
  quiet?: boolean;
  onDone: () => void;
}) {
  const command = useCommand();
  if (!from[act].includes(saga.status)) return null;
  return (
    <Action
      quiet={quiet}
      icon={icons[act]}
      danger={act === "compensate"}
      button={t(`sagas.${act}`)}
      title={step ? t(`sagas.${act}.step`, { name: step }) : t(`sagas.${act}.title`, { id: saga.id })}
      text={t(`sagas.${act}.text`)}
      run={(why) => plain(send<Done>("POST", `sagas/${segments(saga.name, saga.id)}/act`, { act, step, why }))}
      command={(why) => command(`saga ${act}`, [saga.id, "--name", saga.name, ...(step ? ["--step", step] : [])], why)}
      onDone={onDone}
    />
  );
}
