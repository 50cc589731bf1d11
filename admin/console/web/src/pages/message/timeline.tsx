// The timeline of a message, from its row to each consumer.
import type { Step } from "../../api/types";
import { lang, t } from "../../i18n";
import { duration, now } from "../../lib/format";
import { Icon, type IconName, Text, Time, type Tone } from "../../ui";

const looks: Record<Step["kind"], { icon: IconName; tone: Tone }> = {
  occurred: { icon: "bolt", tone: "idle" },
  enqueued: { icon: "databases", tone: "info" },
  scheduled: { icon: "clock", tone: "accent" },
  attempt: { icon: "retry", tone: "warn" },
  deferred: { icon: "lock", tone: "warn" },
  dead: { icon: "cross", tone: "bad" },
  parked: { icon: "park", tone: "idle" },
  published: { icon: "broker", tone: "ok" },
  received: { icon: "consumers", tone: "ok" },
  acted: { icon: "user", tone: "accent" },
  due: { icon: "clock", tone: "idle" },
};

/** The seconds between two steps; undefined where one has no time. */
export function gap(before: Step | undefined, step: Step): number | undefined {
  if (!before?.at || !step.at) return undefined;
  const s = (Date.parse(step.at) - Date.parse(before.at)) / 1000;
  return s > 0 ? s : undefined;
}

export function Timeline({ steps }: { steps: Step[] }) {
  return (
    <ol class="timeline">
      {steps.map((s, i) => {
        const look = looks[s.kind] ?? { icon: "dot", tone: "idle" };
        const later = gap(steps[i - 1], s);
        const future = s.at !== undefined && Date.parse(s.at) > now.value;
        return (
          <li key={i} class={future ? "future" : undefined}>
            {later !== undefined && !future && <span class="gap num">+{duration(later)}</span>}
            <span class={`spot ${look.tone}`}>
              <Icon name={look.icon} size={14} />
            </span>
            <div class="step">
              <div class="step-head">
                <strong>{t(`step.${s.kind}`)}</strong>
                {s.where && (
                  <span class="muted">
                    <Text value={s.where} />
                  </span>
                )}
                <span class="spacer" />
                <span class="muted step-time">
                  <Time at={s.at} exact={!future} />
                </span>
              </div>
              {(s.kind === "acted" || (lang.value === "en" && s.kind === "attempt")) && (
                <p class="muted">
                  <Text value={s.text} />
                </p>
              )}
              {s.detail && s.detail !== steps[i - 1]?.detail && (
                <p class={s.kind === "acted" ? "step-detail quote" : "step-detail"}>
                  <Text value={s.detail} />
                </p>
              )}
            </div>
          </li>
        );
      })}
    </ol>
  );
}
