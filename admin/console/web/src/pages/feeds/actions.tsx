// Actions on feeds.
import { useEffect, useState } from "preact/hooks";
import { ApiError, segments, send } from "../../api/client";
import type { Done, Feed } from "../../api/types";
import { t } from "../../i18n";
import { num } from "../../lib/format";
import { navigate } from "../../lib/router";
import { Action, Check, Field, Icon, Tabs } from "../../ui";
import { plain, useCommand, useLast, useMoments } from "../system";

// Rewinding, adding and removing are for admins.
const admin = { role: "admin" } as const;

/** Pauses or resumes a feed. */
export function PauseFeed({ feed, quiet, onDone }: { feed: Feed; quiet?: boolean; onDone: () => void }) {
  const command = useCommand();
  const act = feed.paused ? "resume" : "pause";
  return (
    <Action
      quiet={quiet}
      icon={feed.paused ? "play" : "pause"}
      button={t(`feeds.${act}`)}
      title={t(`feeds.${act}.title`, { name: feed.name })}
      text={t(`feeds.${act}.text`)}
      run={(why) => plain(send<Done>("POST", `feeds/${segments(feed.name)}/${act}`, { why }))}
      command={(why) => command(`feeds ${act}`, [feed.name], why)}
      onDone={onDone}
    />
  );
}

/** Moves a feed back to an earlier position. */
export function RewindFeed({ name, onDone }: { name: string; onDone: () => void }) {
  const command = useCommand();
  const [by, setBy] = useState<"time" | "message">("time");
  const [time, setTime] = useState("1h");
  const [id, setID] = useState("");
  const last = useLast();
  const { resolve, resolved } = useMoments();
  const run = async (why: string, dryRun: boolean) => {
    if (dryRun) await last();
    if (dryRun) resolve(time);
    const when = resolved(time);
    if (by === "time" && !when) throw new ApiError(400, t("feeds.rewind.badtime"), "");
    if (by === "message" && !id.trim()) throw new ApiError(400, t("feeds.rewind.noid"), "");
    const where = by === "time" ? { time: when } : { id: id.trim() };
    return send<Done>("POST", `feeds/${segments(name)}/rewind`, { ...where, why, dry_run: dryRun });
  };
  return (
    <Action
      {...admin}
      icon="replays"
      button={t("feeds.rewind")}
      title={t("feeds.rewind.title", { name })}
      text={t("feeds.rewind.text")}
      danger
      dryRun
      typeFrom={1000}
      reasonRequired
      version={`${by} ${by === "time" ? time : id}`}
      run={run}
      command={(why) =>
        command(
          "feeds rewind",
          [name, ...(by === "time" ? ["--to", resolved(time) || time.trim()] : ["--message", id.trim() || "ID"])],
          why,
        )
      }
      onDone={onDone}
    >
      <Tabs
        label={t("feeds.rewind.by")}
        value={by}
        onChange={setBy}
        items={[
          ["time", t("feeds.rewind.time")],
          ["message", t("feeds.rewind.message")],
        ]}
      />
      {by === "time" ? (
        <Field label={t("feeds.rewind.time")} help={t("feeds.rewind.time.help")} value={time} onInput={setTime} mono />
      ) : (
        <Field
          label={t("feeds.rewind.message")}
          help={t("feeds.rewind.message.help")}
          value={id}
          onInput={setID}
          mono
        />
      )}
    </Action>
  );
}

/** Adds a feed. */
export function AddFeed({ onDone }: { onDone: () => void }) {
  const command = useCommand();
  const [name, setName] = useState("");
  const [oldest, setOldest] = useState(false);
  return (
    <Action
      {...admin}
      icon="feeds"
      button={t("feeds.add")}
      title={t("feeds.add.title")}
      text={t("feeds.add.text")}
      run={(why) =>
        name.trim()
          ? plain(send<Done>("POST", "feeds", { name: name.trim(), oldest, why }))
          : Promise.reject(new ApiError(400, t("feeds.add.noname"), ""))
      }
      command={(why) => command("feeds add", [name.trim() || "FEED", oldest && "--oldest"], why)}
      onDone={() => {
        setName("");
        onDone();
      }}
    >
      <Field label={t("col.name")} value={name} onInput={setName} placeholder="search-index" mono required />
      <Check checked={oldest} onChange={setOldest}>
        {t("feeds.add.oldest")}
      </Check>
    </Action>
  );
}

/** Removes a feed. */
export function RemoveFeed({ name }: { name: string }) {
  const command = useCommand();
  return (
    <Action
      {...admin}
      icon="trash"
      button={t("feeds.remove")}
      title={t("feeds.remove.title", { name })}
      text={t("feeds.remove.text")}
      danger
      reasonRequired
      run={(why) => plain(send<Done>("DELETE", `feeds/${segments(name)}`, { why }))}
      command={(why) => command("feeds rm", [name], why)}
      onDone={() => navigate("/feeds")}
    >
      <Lost name={name} />
    </Action>
  );
}

/** How many messages would be lost with the feed. */
function Lost({ name }: { name: string }) {
  const [n, set] = useState<number>();
  useEffect(() => {
    send<Done>("DELETE", `feeds/${segments(name)}`, { dry_run: true }).then(
      (d) => set(d.count),
      () => {}, // what is wrong is said when it is done
    );
  }, [name]);
  if (n === undefined) return null;
  return (
    <p class={n > 0 ? "notice warn" : "notice"}>
      <Icon name={n > 0 ? "dead" : "check"} />
      <span>{n > 0 ? t("feeds.remove.lost", { n }) : t("feeds.remove.none", { n: num(n) })}</span>
    </p>
  );
}
