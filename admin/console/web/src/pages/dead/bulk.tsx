// Acts on many dead letters: first a dry run, then the reason, then the action.
import { useState } from "preact/hooks";
import { may } from "../../api/client";
import type { DeadRow, Done, Filter } from "../../api/types";
import { t } from "../../i18n";
import { globals, shellWord } from "../../lib/format";
import { ActionDialog, Field, Icon } from "../../ui";
import { type Act, act, actOnEach, acts } from "./acts";

/** From this number on, the user must type it to discard. */
const many = 2;

const verbs: Record<Act, string> = {
  retry: "dead replay",
  discard: "dead discard",
  skip: "keys skip",
  park: "keys park",
};

/** The command for individually selected messages. The command line can only skip or park keys. */
function commandFor(what: Act, rows: DeadRow[], why: string, like: string): string {
  const which = what === "retry" || what === "discard" ? rows.map((r) => r.id) : rows.flatMap((r) => r.key ?? []);
  const words = [...new Set(which)].map(shellWord);
  return ["postrider", verbs[what], ...words, ...(why ? ["--reason", shellWord(why)] : [])].join(" ") + globals(like);
}

export function BulkDialog(p: {
  filter: Filter;
  rows?: DeadRow[];
  onClose: () => void;
  onDone: (d: Done | undefined) => void;
}) {
  const [what, setWhat] = useState<Act>("retry");
  const [like, setLike] = useState("");
  const [rate, setRate] = useState("");
  const perSecond = Math.max(0, Math.floor(Number(rate) || 0));
  const rows = p.rows?.filter((r) => acts[what].from.includes(r.status));

  // The filter may include statuses that the action does not apply to: leave them out.
  const filter: Filter = p.filter.statuses
    ? { ...p.filter, statuses: p.filter.statuses.filter((s) => acts[what].from.includes(s)) }
    : p.filter;
  const none = filter.statuses?.length === 0;

  const run = async (why: string, dry: boolean): Promise<Done> => {
    if (none) return { count: 0, dry_run: dry, command: "" };
    if (!rows) return act(what, filter, why, dry, what === "retry" ? perSecond : undefined);
    if (dry && rows[0]) setLike((await act("retry", { feed: rows[0].feed, id: rows[0].id }, "", true)).command);
    if (dry) return { count: rows.length, dry_run: true, sample: rows.slice(0, 5), command: "" };
    return actOnEach(what, rows, why);
  };
  return (
    <ActionDialog
      title={t("dead.bulk")}
      button={t(`action.${what}`)}
      size="medium"
      danger={what === "discard"}
      dryRun
      version={`${what} ${perSecond}`}
      typeFrom={what === "discard" ? many : undefined}
      run={run}
      command={rows ? (why) => commandFor(what, rows, why, like) : undefined}
      onDone={p.onDone}
      onClose={p.onClose}
    >
      <fieldset class="choices">
        <legend>{t("action.choose")}</legend>
        {(Object.keys(acts) as Act[])
          .filter((a) => may(acts[a].role))
          .map((a) => (
            <label key={a} class={a === what ? "choice chosen" : "choice"}>
              <input type="radio" name="act" checked={a === what} onChange={() => setWhat(a)} />
              <Icon name={acts[a].icon} />
              <span>
                <strong>{t(`action.${a}`)}</strong>
                <span class="muted">{t(`action.${a}.help`)}</span>
              </span>
            </label>
          ))}
      </fieldset>
      {what === "retry" && !p.rows && (
        <Field
          label={t("dead.rate")}
          help={t("dead.rate.help")}
          type="number"
          value={rate}
          onInput={setRate}
          placeholder="0"
        />
      )}
    </ActionDialog>
  );
}
