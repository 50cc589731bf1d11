import { segments, send } from "../../api/client";
import type { Done, Filter, Replay } from "../../api/types";
import { t } from "../../i18n";
import { num } from "../../lib/format";
import { Action, Badge, type IconName, Progress, Text, Time, type Tone } from "../../ui";
import { plain, useCommand } from "../system";

const looks: Record<Replay["state"], [Tone, IconName]> = {
  running: ["info", "play"],
  paused: ["warn", "pause"],
  done: ["ok", "check"],
  cancelled: ["idle", "cross"],
};

export function ReplayState({ value }: { value: Replay["state"] }) {
  const [tone, icon] = looks[value];
  return (
    <Badge tone={tone} icon={icon}>
      {t(`replays.${value}`)}
    </Badge>
  );
}

/** Progress of a job: delivered messages, and those that failed again. */
export function Bar({ of: r }: { of: Replay }) {
  const settled = r.delivered + r.failed;
  return (
    <div class="sys-meter">
      <Progress
        value={settled}
        max={r.total}
        label={t("replays.progress", { n: settled, total: r.total })}
        tone={r.state === "done" ? "ok" : undefined}
      />
      <span class="sys-meter-text">
        <span class="num">
          {num(r.delivered)} <span class="muted">/ {num(r.total)}</span>
        </span>
        {r.failed > 0 && <span class="bad-text num">{t("replays.failedagain", { n: r.failed })}</span>}
      </span>
    </div>
  );
}

const parts: (keyof Filter)[] = ["type", "topic", "key", "tenant", "error", "id"];

/** A description of a filter. */
export function Chosen({ of: f }: { of: Filter }) {
  return (
    <span class="sys-chosen">
      {f.feed && (
        <span class="sys-chip">
          <Text value={f.feed} />
        </span>
      )}
      {parts.map((k) => {
        const v = f[k];
        return typeof v === "string" && v ? (
          <span class="sys-chip" key={k}>
            <span class="muted">{k}</span> <Text value={v} />
          </span>
        ) : null;
      })}
      {f.since && (
        <span class="sys-chip">
          <span class="muted">≥</span> <Time at={f.since} />
        </span>
      )}
      {f.until && (
        <span class="sys-chip">
          <span class="muted">&lt;</span> <Time at={f.until} />
        </span>
      )}
    </span>
  );
}

/** The buttons of a job. */
export function ReplayActions({ of: r, quiet, onDone }: { of: Replay; quiet?: boolean; onDone: () => void }) {
  const command = useCommand();
  const act = (name: "pause" | "resume" | "cancel", icon: IconName) => (
    <Action
      quiet={quiet}
      icon={icon}
      danger={name === "cancel"}
      button={t(`replays.act.${name}`)}
      label={name === "cancel" ? t("action.cancel") : undefined}
      title={t(`replays.act.${name}.title`, { id: r.id })}
      text={t(`replays.act.${name}.text`)}
      run={(why) => plain(send<Done>("POST", `replays/${segments(r.id)}/${name}`, { why }))}
      command={(why) => command(`replay ${name}`, [String(r.id)], why)}
      onDone={onDone}
    />
  );
  if (r.state === "done" || r.state === "cancelled") return null;
  return (
    <>
      {r.state === "running" ? act("pause", "pause") : act("resume", "play")}
      {act("cancel", "cross")}
    </>
  );
}
