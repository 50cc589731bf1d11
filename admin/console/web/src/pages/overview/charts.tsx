// Four charts with one cursor. The history is fetched once; samples are added as they arrive.
import { useMemo, useRef } from "preact/hooks";
import { live, sample } from "../../api/live";
import { useResource } from "../../api/resource";
import type { Sample, Series } from "../../api/types";
import { t } from "../../i18n";
import { duration, rate, short } from "../../lib/format";
import { query, setQuery } from "../../lib/router";
import { Chart, Problem, Skeleton, Tabs } from "../../ui";

const windows = { "15": "overview.15m", "60": "overview.1h", "1440": "overview.24h" } as const;
type Window = keyof typeof windows;
const names = ["enqueued", "published", "failed", "pending", "oldest", "p50", "p95", "p99"] as const;

/** Adds a sample to a series that is as fine as samples are, and drops those older than the window. */
export function extend(s: Series, added: readonly Sample[], minutes: number): Series {
  const last = s.t[s.t.length - 1] ?? 0;
  const news = added.filter((x) => x.t > last);
  if (news.length === 0) return s;
  const out: Series = { ...s, t: [...s.t, ...news.map((x) => x.t)] };
  for (const n of names) out[n] = [...s[n], ...news.map((x) => x[n])];
  const from = out.t.findIndex((x) => x >= out.t[out.t.length - 1]! - minutes * 60);
  if (from > 0) {
    out.t = out.t.slice(from);
    for (const n of names) out[n] = out[n].slice(from);
  }
  return out;
}

export function Charts() {
  const asked = query.value.get("minutes") ?? "15";
  const minutes: Window = asked in windows ? (asked as Window) : "15";
  const series = useResource<Series>("series", { minutes }, minutes === "15" && live.value === "live");
  const news = useRef<Sample[]>([]);
  const s = sample.value;
  if (s && news.current[news.current.length - 1]?.t !== s.t) news.current = [...news.current.slice(-900), s];
  const data = useMemo(
    () => (series.data && minutes === "15" ? extend(series.data, news.current, 15) : series.data),
    [series.data, s, minutes],
  );

  const span = Number(minutes) * 60;
  return (
    <section class="charts" aria-label={t("overview.rate")}>
      <div class="charts-bar">
        <Tabs
          label={t("overview.window")}
          value={minutes}
          onChange={(v) => setQuery({ minutes: v === "15" ? undefined : v })}
          items={(Object.keys(windows) as Window[]).map((w) => [w, t(windows[w])])}
        />
      </div>
      {series.error && <Problem error={series.error} retry={series.reload} />}
      {!data && !series.error && <Skeleton rows={8} />}
      {data && data.t.length < 2 && <p class="notice">{t("overview.noseries")}</p>}
      {data && data.t.length >= 2 && (
        <div class="chart-grid">
          <Chart
            title={t("overview.rate")}
            group="overview"
            span={span}
            t={data.t}
            format={rate}
            lines={[
              { name: t("overview.enqueued"), color: "info", values: data.enqueued, dash: true },
              { name: t("overview.published"), color: "ok", values: data.published, fill: true },
              { name: t("overview.failed"), color: "bad", values: data.failed },
            ]}
          />
          <Chart
            title={t("overview.pending")}
            whole
            group="overview"
            span={span}
            t={data.t}
            format={short}
            lines={[{ name: t("col.pending"), color: "accent", values: data.pending, fill: true }]}
          />
          <Chart
            title={t("overview.latency")}
            group="overview"
            span={span}
            t={data.t}
            format={duration}
            lines={[
              { name: "p50", color: "ok", values: data.p50 },
              { name: "p95", color: "warn", values: data.p95, dash: true },
              { name: "p99", color: "bad", values: data.p99 },
            ]}
          />
          <Chart
            title={t("overview.age")}
            group="overview"
            span={span}
            t={data.t}
            format={duration}
            lines={[{ name: t("col.oldest"), color: "warn", values: data.oldest, fill: true }]}
          />
        </div>
      )}
    </section>
  );
}
