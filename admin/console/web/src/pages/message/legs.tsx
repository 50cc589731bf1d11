// The status of a message for each feed and consumer, with actions.
import { useState } from "preact/hooks";
import { may, send } from "../../api/client";
import type { Done, Journey, Leg } from "../../api/types";
import { t } from "../../i18n";
import { Action, Badge, Check, Icon, Status, Text, Time } from "../../ui";
import { type Act, act, acts } from "../dead/acts";
import { EditDialog } from "../dead/edit";

function LegActions({ leg, j, onDone }: { leg: Leg; j: Journey; onDone: () => void }) {
  const [edit, setEdit] = useState(false);
  const [force, setForce] = useState(false);
  const id = j.message.id;
  const possible = (Object.keys(acts) as Act[]).filter(
    (a) => acts[a].from.includes(leg.status) && (a !== "skip" || leg.blocking),
  );
  const editable = (leg.status === "dead" || leg.status === "parked") && may("operator");
  return (
    <div class="leg-actions">
      {possible.map((a) => (
        <Action
          key={a}
          quiet
          icon={acts[a].icon}
          role={acts[a].role}
          danger={a === "discard"}
          button={t(`action.${a}`)}
          title={`${t(`action.${a}`)} · ${j.message.type}`}
          text={t(`action.${a}.help`)}
          dryRun
          run={(why, dry) => act(a, { feed: leg.feed, id }, why, dry)}
          onDone={onDone}
        />
      ))}
      {editable && (
        <button type="button" class="button quiet" onClick={() => setEdit(true)}>
          <Icon name="edit" size={14} />
          {t("action.edit")}
        </button>
      )}
      {edit && (
        <EditDialog
          feed={leg.feed}
          message={j.message}
          like={j.command}
          onClose={() => setEdit(false)}
          onDone={onDone}
        />
      )}
      {leg.status === "published" && j.in_log && (
        <Action
          quiet
          icon="replays"
          button={t("action.replay")}
          title={`${t("action.replay")} · ${j.message.type}`}
          text={t("action.replay.help")}
          dryRun
          version={String(force)}
          run={(why, dry) =>
            send<Done>("POST", "replays", {
              filter: { feed: leg.feed, id },
              dead: false,
              rate: 0,
              why,
              dry_run: dry,
              force,
            })
          }
          onDone={onDone}
        >
          <Check checked={force} onChange={setForce}>
            {t("message.force")}
          </Check>
        </Action>
      )}
    </div>
  );
}

export function Legs({ j, onDone }: { j: Journey; onDone: () => void }) {
  return (
    <ul class="legs">
      {j.feeds.map((leg) => {
        const consumer = leg.feed.startsWith("inbox/") ? leg.feed.slice("inbox/".length) : undefined;
        return (
          <li key={leg.feed}>
            <div class="leg-head">
              <Icon name={consumer ? "consumers" : "feeds"} />
              <strong>
                <Text value={consumer ?? leg.feed} />
              </strong>
              <Status value={leg.status} />
              {leg.blocking && (
                <Badge tone="warn" icon="lock">
                  {t("message.blocking")}
                </Badge>
              )}
              <span class="spacer" />
              <span class="muted">
                {leg.settled ? (
                  <Time at={leg.settled} />
                ) : (
                  leg.attempts > 0 && t("message.attempts", { n: leg.attempts })
                )}
              </span>
            </div>
            {leg.last_error && leg.status !== "published" && (
              <p class="error-text">
                <Text value={leg.last_error} />
              </p>
            )}
            {leg.available_at && (leg.status === "retry" || leg.status === "scheduled") && (
              <p class="muted">
                {t("message.nextat")} <Time at={leg.available_at} />
              </p>
            )}
            <LegActions leg={leg} j={j} onDone={onDone} />
          </li>
        );
      })}
      {j.receipts.map((r) => (
        <li key={`receipt ${r.consumer}`}>
          <div class="leg-head">
            <Icon name="consumers" />
            <strong>
              <Text value={r.consumer} />
            </strong>
            <Badge tone="ok" icon="check">
              {t("step.received")}
            </Badge>
            <span class="spacer" />
            <span class="muted">
              <Time at={r.at} />
            </span>
          </div>
        </li>
      ))}
    </ul>
  );
}
