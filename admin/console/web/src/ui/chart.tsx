// Charts over time. The canvas takes its colours from the style sheet, and the same numbers can be read as a table.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { lang, t } from "../i18n";
import { clock, now } from "../lib/format";
import { resolved } from "../shell/theme";
import { Icon } from "./icon";

export interface Line {
  name: string;
  color: "ok" | "info" | "bad" | "warn" | "accent"; // of the style sheet: --chart-NAME
  values: (number | null)[];
  dash?: boolean; // told apart by more than colour
  fill?: boolean;
}

/** A chart of lines over the same times. Charts with the same group share their cursor. */
export function Chart(p: {
  title: string;
  t: number[];
  lines: Line[];
  format: (v: number) => string;
  group?: string;
  whole?: boolean; // counts: no parts of one on the axis
  span?: number; // seconds that are shown, up to the last
  height?: number;
}) {
  const [table, setTable] = useState(false);
  return (
    <section class="card chart">
      <header class="card-head">
        <h2>{p.title}</h2>
        <ul class="legend">
          {p.lines.map((l) => (
            <li key={l.name}>
              <span class={`swatch ${l.color} ${l.dash ? "dash" : ""}`} aria-hidden="true" />
              {l.name}
              <span class="num legend-value">{last(l.values, p.format)}</span>
            </li>
          ))}
        </ul>
        <button
          type="button"
          class="ghost"
          aria-pressed={table}
          aria-label={t("chart.table")}
          title={t("chart.table")}
          onClick={() => setTable(!table)}
        >
          <Icon name={table ? "chart" : "table"} size={14} />
        </button>
      </header>
      {table ? <Numbers {...p} /> : <Canvas {...p} />}
    </section>
  );
}

function last(values: (number | null)[], format: (v: number) => string): string {
  for (let i = values.length - 1; i >= 0 && i >= values.length - 5; i--) {
    const v = values[i];
    if (v !== null && v !== undefined) return format(v);
  }
  return "–";
}

function Numbers(p: Parameters<typeof Chart>[0]) {
  const step = Math.max(1, Math.ceil(p.t.length / 30));
  const rows = p.t.map((_, i) => i).filter((i) => (p.t.length - 1 - i) % step === 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must get there
    <div class="table-wrap chart-table" tabIndex={0}>
      <table class="table" aria-label={p.title}>
        <thead>
          <tr>
            <th>{t("chart.time")}</th>
            {p.lines.map((l) => (
              <th class="r" key={l.name}>
                {l.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.reverse().map((i) => (
            <tr key={p.t[i]}>
              <td class="num">{clock(p.t[i]! * 1000, now.peek())}</td>
              {p.lines.map((l) => {
                const v = l.values[i];
                return (
                  <td class="r num" key={l.name}>
                    {v === null || v === undefined ? "–" : p.format(v)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Canvas(p: Parameters<typeof Chart>[0]) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(p);
  latest.current = p;
  const height = p.height ?? 150;
  const theme = resolved.value;
  const language = lang.value;
  const shape = p.lines.map((l) => l.name).join();

  useEffect(() => {
    const el = box.current!;
    const style = getComputedStyle(document.documentElement);
    const css = (name: string) => style.getPropertyValue(name).trim();
    const font = `11px ${css("--font")}`;
    const axis = { stroke: css("--muted"), font, grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false } };
    const u = new uPlot(
      {
        width: el.clientWidth || 400,
        height,
        padding: [10, 26, 0, 0],
        cursor: {
          y: false,
          points: { size: 7 },
          drag: { x: false, y: false },
          ...(p.group ? { sync: { key: p.group, setSeries: false } } : {}),
        },
        legend: { show: false },
        scales: {
          x: { range: (_, min, max) => [from(min, max, latest.current.span), max] },
          y: { range: (_, _min, max) => top(max, latest.current.whole) },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 22,
            gap: 5,
            space: 70,
            values: (_, ticks, _axis, _space, step) =>
              ticks.map((x) => clock(x * 1000, x * 1000).slice(0, step < 60 ? undefined : 5)),
          },
          {
            ...axis,
            size: 58,
            space: 32,
            ...(p.whole ? { incrs: wholes } : {}),
            values: (_, ticks) => once(ticks.map((v) => latest.current.format(v))),
          },
        ],
        series: [
          {},
          ...latest.current.lines.map((l) => ({
            label: l.name,
            stroke: css(`--chart-${l.color}`),
            width: 1.6,
            dash: l.dash ? [5, 4] : undefined,
            fill: l.fill ? css(`--chart-${l.color}-fill`) : undefined,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(self) => tip(self, latest.current)] },
      },
      data(latest.current),
      el,
    );
    const float = document.createElement("div");
    float.className = "tip";
    float.hidden = true;
    u.over.append(float);
    plot.current = u;
    const watch = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height }));
    watch.observe(el);
    return () => {
      watch.disconnect();
      u.destroy();
    };
  }, [theme, language, shape, height, p.group]);

  useEffect(() => plot.current?.setData(data(p)), [p.t, p.lines]);

  return <div class="canvas" ref={box} role="img" aria-label={`${p.title}. ${t("chart.hint")}`} />;
}

/** Steps of an axis of counts: 1, 2, 5, 10, 20 … */
const wholes = Array.from({ length: 12 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

/** The range of values: from zero, with some room above the largest. */
export function top(max: number, whole = false): [number, number] {
  return [0, Math.max(whole ? 4 : 0, max > 0 ? max * 1.15 : 1)];
}

/** Labels without duplicates, which rounding can cause. */
export function once(labels: string[]): string[] {
  return labels.map((l, i) => (l === labels[i - 1] ? "" : l));
}

/** Where the time axis begins: with the first value, but at least two minutes and at most span before the last. */
export function from(min: number, max: number, span = Number.POSITIVE_INFINITY): number {
  return Math.max(max - span, Math.min(min, max - 120));
}

function data(p: Parameters<typeof Chart>[0]): uPlot.AlignedData {
  return [p.t, ...p.lines.map((l) => l.values)] as uPlot.AlignedData;
}

/** Shows the values under the cursor. Built from text nodes, because the values are untrusted. */
function tip(u: uPlot, p: Parameters<typeof Chart>[0]): void {
  const float = u.over.querySelector<HTMLElement>(".tip");
  if (!float) return;
  const i = u.cursor.idx;
  const left = u.cursor.left ?? -1;
  if (i === null || i === undefined || left < 0) {
    float.hidden = true;
    return;
  }
  const line = (text: string, cls = "") => {
    const d = document.createElement("div");
    d.className = cls;
    d.textContent = text;
    return d;
  };
  const rows = p.lines.map((l) => {
    const v = l.values[i];
    return line(`${l.name}  ${v === null || v === undefined ? "–" : p.format(v)}`, `tip-row ${l.color}`);
  });
  float.replaceChildren(line(clock(p.t[i]! * 1000, now.peek()), "tip-time"), ...rows);
  float.hidden = false;
  const room = u.over.clientWidth - left;
  float.style.left = room < 150 ? "" : `${left + 10}px`;
  float.style.right = room < 150 ? `${room + 10}px` : "";
}
