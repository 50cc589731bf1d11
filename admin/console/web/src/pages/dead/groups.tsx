// Dead letters grouped by error: most of them usually have the same cause.
import type { Groups } from "../../api/types";
import { t } from "../../i18n";
import { num } from "../../lib/format";
import { setQuery } from "../../lib/router";
import { Card, Progress, Skeleton, Text, Time } from "../../ui";

export function ErrorGroups({ groups, current }: { groups: Groups | undefined; current: string }) {
  const max = Math.max(1, ...(groups?.groups.map((g) => g.count) ?? []));
  const choose = (words: string) => setQuery({ error: words || undefined }, "push");
  return (
    <Card
      flush
      title={t("dead.groups")}
      actions={groups && !groups.all && <span class="muted">{t("dead.groups.sampled", { n: groups.sampled })}</span>}
    >
      {!groups && <Skeleton rows={5} />}
      {groups && (
        <ul class="groups">
          <li>
            <button type="button" aria-pressed={current === ""} onClick={() => choose("")}>
              <span class="group-head">
                <span class="group-error">{t("dead.groups.all")}</span>
                <span class="num">{num(groups.sampled)}</span>
              </span>
            </button>
          </li>
          {groups.groups.map((g) => (
            <li key={g.words}>
              <button
                type="button"
                aria-pressed={current === g.words}
                onClick={() => choose(current === g.words ? "" : g.words)}
              >
                <span class="group-head">
                  <span class="group-error" title={g.error}>
                    {g.error ? <Text value={g.error} /> : t("dead.noerror")}
                  </span>
                  <span class="num">{num(g.count)}</span>
                </span>
                <Progress value={g.count} max={max} label={num(g.count)} tone="bad" />
                <span class="group-foot muted">
                  <span class="cut">{g.types.join(", ")}</span>
                  <Time at={g.newest} />
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
