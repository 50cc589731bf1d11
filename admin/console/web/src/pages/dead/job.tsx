// Progress of a replay that was started here.
import { useEffect } from "preact/hooks";
import { segments } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Replay } from "../../api/types";
import { t } from "../../i18n";
import { num } from "../../lib/format";
import { Icon, Link, Progress } from "../../ui";

export function JobProgress(p: { job: Replay; onClose: () => void; onDone: () => void }) {
  const asked = useResource<Replay>(`replays/${segments(p.job.id)}`);
  const job = asked.data ?? p.job;
  const over = job.state === "done" || job.state === "cancelled";
  useEffect(() => {
    if (over) p.onDone();
  }, [over]);
  return (
    <div class="card job">
      <Icon name={over ? "check" : "replays"} />
      <Link to={`/replays/${segments(job.id)}`}>{t("dead.job", { id: String(job.id) })}</Link>
      <Progress
        value={job.delivered}
        max={job.total}
        label={t("dead.job", { id: String(job.id) })}
        tone={over ? "ok" : undefined}
      />
      <span class="num">{t("dead.job.progress", { done: num(job.delivered), total: num(job.total) })}</span>
      {job.failed > 0 && <span class="bad-text num">{t("dead.job.failed", { n: job.failed })}</span>}
      <button type="button" class="ghost" aria-label={t("action.close")} onClick={p.onClose}>
        <Icon name="cross" size={14} />
      </button>
    </div>
  );
}
