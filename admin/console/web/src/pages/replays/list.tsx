import { useResource } from "../../api/resource";
import type { Replay } from "../../api/types";
import { t } from "../../i18n";
import { Card, Link, Num, Page, Table, Text, Time } from "../../ui";
import { forOperators, Loaded } from "../system";
import { Bar, Chosen, ReplayActions, ReplayState } from "./parts";
import { StartReplay } from "./start";

/** All replays, newest first. */
export function ReplaysPage() {
  const replays = useResource<Replay[]>("replays");
  return (
    <Page title={t("nav.replays")} lead={t("replays.lead")} actions={<StartReplay onDone={replays.reload} />}>
      <Card flush>
        <Loaded of={replays} icon="replays" title={t("replays.none")} help={t("replays.none.help")}>
          {(rows) => (
            <Table
              label={t("nav.replays")}
              rows={rows}
              id={(r) => String(r.id)}
              to={(r) => `/replays/${r.id}`}
              columns={[
                { name: "#", cell: (r) => <Link to={`/replays/${r.id}`}>{r.id}</Link> },
                { name: t("col.status"), cell: (r) => <ReplayState value={r.state} /> },
                { name: t("replays.progress.short"), cell: (r) => <Bar of={r} /> },
                {
                  name: t("replays.what"),
                  grow: true,
                  hide: "medium",
                  cell: (r) => (
                    <div class="two">
                      <span>{t(r.dead ? "replays.dead" : "replays.log")}</span>
                      <Chosen of={r.filter} />
                    </div>
                  ),
                },
                { name: t("replays.rate"), num: true, hide: "narrow", cell: (r) => <Speed n={r.rate} /> },
                {
                  name: t("audit.who"),
                  hide: "medium",
                  cell: (r) => (
                    <div class="two sys-by">
                      <Text value={r.by.who} />
                      <span>
                        <Time at={r.created} />
                        {r.by.why && (
                          <>
                            {" "}
                            · <Text value={r.by.why} />
                          </>
                        )}
                      </span>
                    </div>
                  ),
                },
                ...forOperators<Replay>({
                  name: t("col.actions"),
                  num: true,
                  hide: "narrow",
                  cell: (r) => (
                    <div class="cell-actions">
                      <ReplayActions of={r} quiet onDone={replays.reload} />
                    </div>
                  ),
                }),
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

/** At most so many a second. */
export function Speed({ n }: { n: number }) {
  return n === 0 ? (
    <span class="muted">{t("replays.nolimit")}</span>
  ) : (
    <span>
      <Num n={n} />
      <span class="unit">/s</span>
    </span>
  );
}
