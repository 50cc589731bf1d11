// Times, numbers and states, each shown the same way everywhere.
import type { ComponentChildren } from "preact";
import type { Estimate, Status as StatusName } from "../api/types";
import { known, t } from "../i18n";
import { absolute, clock, counted, duration, now, num, rate, relative, short } from "../lib/format";
import { Icon, type IconName } from "./icon";

/** A time: how long ago, and in full when pointed at. exact: the time of day instead. */
export function Time({ at, exact }: { at?: string; exact?: boolean }) {
  if (!at) return <span class="muted">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={absolute(ms)}>
      {exact ? clock(ms, now.value, true) : relative(ms, now.value)}
    </time>
  );
}

/** How long ago a time was, as a length: "3m 20s". */
export function Age({ at }: { at?: string }) {
  if (!at) return <span class="muted">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={absolute(ms)} class="num">
      {duration(Math.max(0, Math.round((now.value - ms) / 1000)))}
    </time>
  );
}

/** A number; zero may be dimmed so that others stand out. capped: counted only so far, see counted. */
export function Num({
  n,
  dim,
  compact,
  capped,
}: {
  n: number | null | undefined;
  dim?: boolean;
  compact?: boolean;
  capped?: boolean;
}) {
  if (n === null || n === undefined) return <span class="muted">–</span>;
  return (
    <span class={dim && n === 0 ? "num faint" : "num"} title={compact ? num(n) : undefined}>
      {compact ? short(n) : capped ? counted(n) : num(n)}
    </span>
  );
}

/** A rate a second. */
export function Rate({ n }: { n: number | null }) {
  if (n === null) return <span class="muted">–</span>;
  return (
    <span class="num">
      {rate(n)}
      <span class="unit">/s</span>
    </span>
  );
}

/** A number that may be an estimate. */
export function Guess({ value, dim }: { value: Estimate; dim?: boolean }) {
  return (
    <span class={dim && value.n === 0 ? "num faint" : "num"} title={value.exact ? undefined : t("value.estimate")}>
      {value.exact ? "" : "≈ "}
      {short(value.n)}
    </span>
  );
}

export type Tone = "ok" | "warn" | "bad" | "info" | "idle" | "accent";

/** A small label with a colour and a shape. */
export function Badge({
  tone = "idle",
  icon,
  children,
}: {
  tone?: Tone;
  icon?: IconName;
  children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`}>
      {icon ? <Icon name={icon} size={12} /> : <span class={`dot ${tone}`} aria-hidden="true" />}
      <span>{children}</span>
    </span>
  );
}

const looks: Record<StatusName, { tone: Tone; icon: IconName }> = {
  pending: { tone: "info", icon: "clock" },
  published: { tone: "ok", icon: "check" },
  scheduled: { tone: "accent", icon: "clock" },
  retry: { tone: "warn", icon: "retry" },
  held: { tone: "warn", icon: "clock" },
  waiting: { tone: "warn", icon: "lock" },
  dead: { tone: "bad", icon: "cross" },
  parked: { tone: "idle", icon: "park" },
};

/** The state of a message: colour, shape and word. */
export function Status({ value }: { value: StatusName }) {
  const look = looks[value] ?? { tone: "idle", icon: "dot" };
  const key = `status.${value}`;
  return (
    <Badge tone={look.tone} icon={look.icon}>
      {known(key) ? t(key) : value}
    </Badge>
  );
}
