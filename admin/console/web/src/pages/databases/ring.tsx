// The ring of slots that the log is written into, drawn as one.
import type { DatabaseHealth } from "../../api/types";
import { t } from "../../i18n";
import { duration, num, percent } from "../../lib/format";

const size = 132;
const [outer, inner] = [62, 47];

/** The outline of a part of the ring; from and to are parts of the whole turn. */
export function arc(from: number, to: number): string {
  const point = (r: number, turn: number) => {
    const a = turn * 2 * Math.PI - Math.PI / 2;
    return `${(size / 2 + r * Math.cos(a)).toFixed(2)} ${(size / 2 + r * Math.sin(a)).toFixed(2)}`;
  };
  const end = Math.min(to, from + 0.9999);
  const large = end - from > 0.5 ? 1 : 0;
  return `M${point(outer, from)}A${outer} ${outer} 0 ${large} 1 ${point(outer, end)}L${point(inner, end)}A${inner} ${inner} 0 ${large} 0 ${point(inner, from)}Z`;
}

export function Ring({ capacity: c }: { capacity: DatabaseHealth["capacity"] }) {
  if (c.slots === 0) return <p class="muted">{t("databases.ring.none")}</p>;
  const share = c.used / c.slots;
  const tone = share >= 0.9 ? "bad" : share >= 0.75 ? "warn" : "ok";
  const few = c.slots <= 96;
  const gap = few ? 0.16 / c.slots : 0;
  return (
    <div class="ring">
      <svg
        width={size}
        height={size}
        viewBox={`0 0 ${size} ${size}`}
        role="img"
        aria-label={t("databases.ring.label", { used: c.used, slots: c.slots })}
      >
        {few ? (
          Array.from({ length: c.slots }, (_, i) => (
            <path
              key={i}
              class={i < c.used ? `slot ${tone}` : "slot"}
              d={arc(i / c.slots + gap, (i + 1) / c.slots - gap)}
            />
          ))
        ) : (
          <>
            <path class="slot" d={arc(0, 1)} />
            <path class={`slot ${tone}`} d={arc(0, share)} />
          </>
        )}
        <text x={size / 2} y={size / 2 + 1} class="ring-value" text-anchor="middle">
          {percent(share)}
        </text>
        <text x={size / 2} y={size / 2 + 17} class="ring-of" text-anchor="middle">
          {num(c.used)} / {num(c.slots)}
        </text>
      </svg>
      <div class="ring-text">
        <p>{t("databases.ring.period", { time: duration(c.period) })}</p>
        <p class={tone === "ok" ? "muted" : `${tone}-text`}>
          {t(tone === "ok" ? "databases.ring.ok" : "databases.ring.warn", {
            time: duration((c.slots - c.used) * c.period),
          })}
        </p>
      </div>
    </div>
  );
}
