// An age on a scale with two limits. The scale is logarithmic: milliseconds and days both have to fit.
import { t } from "../../i18n";
import { duration } from "../../lib/format";

const width = 240;
const least = Math.log10(0.1);
const most = Math.log10(86_400);

/** Where an age of so many seconds lies, from 0 to 1. */
export function position(seconds: number): number {
  return Math.min(1, Math.max(0, (Math.log10(Math.max(seconds, 1e-3)) - least) / (most - least)));
}

export function Scale(p: { label: string; help: string; value: number; limits: [number, number] }) {
  const tone = p.value >= p.limits[1] ? "bad" : p.value >= p.limits[0] ? "warn" : "ok";
  const [a, b] = [position(p.limits[0]) * width, position(p.limits[1]) * width];
  const at = position(p.value) * width;
  return (
    <div class="scale" title={p.help}>
      <div class="row">
        <span class="muted">{p.label}</span>
        <span class="spacer" />
        <strong class={`num ${tone === "ok" ? "" : `${tone}-text`}`}>
          {p.value > 0 ? duration(p.value) : t("databases.noage")}
        </strong>
      </div>
      <svg
        viewBox={`0 0 ${width} 14`}
        role="img"
        preserveAspectRatio="none"
        aria-label={t(`databases.scale.${tone}`, { warn: duration(p.limits[0]), bad: duration(p.limits[1]) })}
      >
        <rect class="zone ok" x="0" y="5" width={a - 1} height="4" rx="2" />
        <rect class="zone warn" x={a + 1} y="5" width={b - a - 2} height="4" />
        <rect class="zone bad" x={b + 1} y="5" width={width - b - 1} height="4" rx="2" />
        {p.value > 0 && (
          <rect
            class={`hand ${tone}`}
            x={Math.min(width - 4, Math.max(0, at - 2))}
            y="0"
            width="4"
            height="14"
            rx="2"
          />
        )}
      </svg>
      <p class={tone === "ok" ? "help" : `help ${tone}-text`}>
        {tone === "ok" ? t("databases.scale.ok", { warn: duration(p.limits[0]), bad: duration(p.limits[1]) }) : p.help}
      </p>
    </div>
  );
}
