import { useState } from "preact/hooks";
import { ApiError, send } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Done, Feed } from "../../api/types";
import { t } from "../../i18n";
import { parseTime } from "../../lib/format";
import { navigate } from "../../lib/router";
import { Action, Check, Field, Select } from "../../ui";
import { useLast, useMoments } from "../system";

const empty = { feed: "", type: "", topic: "", key: "", tenant: "", since: "1h", until: "", rate: "100" };
type Draft = typeof empty;

/** Sends delivered messages again, chosen by a filter. */
export function StartReplay({ onDone }: { onDone: () => void }) {
  const feeds = useResource<Feed[]>("feeds", {}, true);
  const [draft, setDraft] = useState<Draft>(empty);
  const [force, setForce] = useState(false);
  const last = useLast();
  const { resolve, resolved } = useMoments();
  const names = (feeds.data ?? []).map((f) => f.name);
  const feed = draft.feed || (names.includes("default") ? "default" : (names[0] ?? ""));
  const set = (k: keyof Draft) => (v: string) => setDraft({ ...draft, [k]: v });
  const bad = (k: "since" | "until") =>
    draft[k] && !parseTime(draft[k], Date.now()) ? t("messages.time.bad") : undefined;
  const run = async (why: string, dryRun: boolean) => {
    if (dryRun) {
      await last();
      resolve(draft.since, draft.until);
    }
    if (bad("since") || bad("until")) throw new ApiError(400, t("messages.time.bad"), "");
    const rate = Number(draft.rate || 0);
    if (!Number.isInteger(rate) || rate < 0) throw new ApiError(400, t("replays.badrate"), "");
    const text = (k: keyof Draft) => draft[k].trim() || undefined;
    const when = (k: "since" | "until") => resolved(draft[k]) || undefined;
    const filter = {
      feed,
      type: text("type"),
      topic: text("topic"),
      key: text("key"),
      tenant: text("tenant"),
      since: when("since"),
      until: when("until"),
    };
    return send<Done>("POST", "replays", { filter, dead: false, rate, why, dry_run: dryRun, force });
  };
  return (
    <Action
      icon="replays"
      size="large"
      button={t("replays.start")}
      title={t("replays.start.title")}
      text={t("replays.start.text")}
      dryRun
      reasonRequired
      typeFrom={1000}
      version={JSON.stringify([draft, feed, force])}
      run={run}
      onDone={(d) => (d?.job ? navigate(`/replays/${d.job.id}`) : onDone())}
    >
      <div class="sys-fields">
        <Select label={t("col.feed")} value={feed} items={names.map((n) => [n, n])} onChange={set("feed")} />
        <Field label={t("col.type")} value={draft.type} onInput={set("type")} mono placeholder="order.placed" />
        <Field label={t("col.topic")} value={draft.topic} onInput={set("topic")} mono />
        <Field label={t("col.key")} value={draft.key} onInput={set("key")} mono />
        <Field label={t("col.tenant")} value={draft.tenant} onInput={set("tenant")} />
        <Field
          label={t("messages.since")}
          value={draft.since}
          onInput={set("since")}
          error={bad("since")}
          help={t("messages.time.help")}
          mono
        />
        <Field
          label={t("messages.until")}
          value={draft.until}
          onInput={set("until")}
          error={bad("until")}
          help={t("messages.time.help")}
          mono
        />
        <Field
          label={t("dead.rate")}
          value={draft.rate}
          onInput={set("rate")}
          help={t("dead.rate.help")}
          type="number"
          mono
        />
      </div>
      <Check checked={force} onChange={setForce}>
        {t("replays.force")}
      </Check>
    </Action>
  );
}
