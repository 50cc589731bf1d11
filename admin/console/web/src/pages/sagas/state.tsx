// How the states of sagas and of their steps look: colour, shape and word.
import type { SagaRow, SagaStep } from "../../api/types";
import { known, t } from "../../i18n";
import { Badge, type IconName, type Tone } from "../../ui";

export type SagaStatus = SagaRow["status"];

/** In the order of the tabs: what needs attention first. */
export const statuses: SagaStatus[] = ["stuck", "running", "waiting", "compensating", "completed", "compensated"];

const looks: Record<SagaStatus, [Tone, IconName]> = {
  running: ["info", "play"],
  waiting: ["accent", "clock"],
  compensating: ["warn", "replays"],
  stuck: ["bad", "dead"],
  completed: ["ok", "check"],
  compensated: ["idle", "replays"],
};

export function SagaBadge({ value }: { value: SagaStatus }) {
  const [tone, icon] = looks[value] ?? ["idle", "dot"];
  return (
    <Badge tone={tone} icon={icon}>
      {word(`sagas.${value}`, value)}
    </Badge>
  );
}

const steps: Record<string, [Tone, IconName]> = {
  pending: ["idle", "dot"],
  ready: ["info", "play"],
  waiting: ["accent", "clock"],
  done: ["ok", "check"],
  failed: ["bad", "cross"],
  cancelled: ["idle", "cross"],
  skipped: ["idle", "skip"],
  undoing: ["warn", "replays"],
  stuck: ["bad", "dead"],
  undone: ["idle", "replays"],
};

/** Colour and shape of a step. A ready step that has failed before is about to be retried. */
export function stepLook(s: SagaStep): [Tone, IconName] {
  if (s.state === "ready" && s.attempts > 0) return ["warn", "retry"];
  return steps[s.state] ?? ["idle", "dot"];
}

export function stepWord(s: SagaStep): string {
  return s.state === "ready" && s.attempts > 0 ? t("step.state.retrying") : word(`step.state.${s.state}`, s.state);
}

function word(key: string, other: string): string {
  return known(key) ? t(key) : other;
}
