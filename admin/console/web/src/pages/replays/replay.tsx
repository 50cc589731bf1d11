import { segments } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Replay } from "../../api/types";
import { t } from "../../i18n";
import { duration } from "../../lib/format";
import { to } from "../../lib/router";
import { Card, Command, Facts, Link, Num, Page, Stat, Text, Time } from "../../ui";
import { Loaded, useCommand } from "../system";
import { Speed } from "./list";
import { Bar, Chosen, ReplayActions, ReplayState } from "./parts";

/** A replay and its progress. */
export function ReplayPage({ id }: { id: string }) {
  const replay = useResource<Replay>(`replays/${segments(id)}`);
  const command = useCommand();
  const r = replay.data;
  const consumer = r?.filter.feed?.startsWith("inbox/") ? r.filter.feed.slice(6) : undefined;
  return (
    <Page
      title={t("replays.one", { id })}
      lead={
        <span class="row">
          <Link to="/replays">{t("nav.replays")}</Link>
          {r && <ReplayState value={r.state} />}
        </span>
      }
      actions={r && <ReplayActions of={r} onDone={replay.reload} />}
    >
      <Loaded of={replay} icon="replays" title="">
        {(r) => (
          <>
            <div class="stats">
              <Stat label={t("replays.total")}>
                <Num n={r.total} />
              </Stat>
              <Stat label={t("replays.sent")}>
                <Num n={r.sent} />
              </Stat>
              <Stat label={t("replays.delivered")} tone={r.delivered > 0 ? "ok" : undefined}>
                <Num n={r.delivered} />
              </Stat>
              <Stat
                label={t("replays.failed")}
                tone={r.failed > 0 ? "bad" : undefined}
                to={r.failed > 0 ? to("/dead", consumer ? { consumer } : { feed: r.filter.feed }) : undefined}
              >
                <Num n={r.failed} />
              </Stat>
            </div>
            <Card title={t("replays.progress.short")}>
              <div class="stack">
                <Bar of={r} />
                {r.state === "running" && r.rate > 0 && r.sent < r.total && (
                  <p class="muted">{t("replays.left", { time: duration(Math.round((r.total - r.sent) / r.rate)) })}</p>
                )}
              </div>
            </Card>
            <Card title={t("message.details")}>
              <div class="stack">
                <Facts
                  items={[
                    [t("replays.what"), t(r.dead ? "replays.dead" : "replays.log")],
                    [t("replays.chosen"), <Chosen of={r.filter} key="f" />],
                    [t("replays.rate"), <Speed n={r.rate} key="s" />],
                    [t("audit.who"), <Text value={r.by.who} key="w" />],
                    [t("audit.why"), r.by.why && <Text value={r.by.why} />],
                    [t("replays.created"), <Time at={r.created} key="c" />],
                    [t("sagas.finished"), r.finished && <Time at={r.finished} />],
                  ]}
                />
                <Command text={command("replay show", [id])} />
              </div>
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  );
}
