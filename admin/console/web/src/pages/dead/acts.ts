// Actions on deferred messages, and the roles that may use them.
import { send } from "../../api/client";
import type { Done, Filter, Role, Status } from "../../api/types";
import type { IconName } from "../../ui";

export type Act = "retry" | "skip" | "park" | "discard";

/** For each action: its icon, the lowest role, and the statuses it applies to. */
export const acts: Record<Act, { icon: IconName; role: Role; from: Status[] }> = {
  retry: { icon: "retry", role: "operator", from: ["dead", "parked", "retry", "held"] },
  skip: { icon: "skip", role: "operator", from: ["dead", "retry", "held"] },
  park: { icon: "park", role: "operator", from: ["dead", "retry", "held"] },
  discard: { icon: "trash", role: "admin", from: ["dead", "parked"] },
};

/** Applies an action to all matching messages; with dryRun it only returns which. */
export function act(what: Act, filter: Filter, why: string, dryRun: boolean, rate?: number): Promise<Done> {
  return send<Done>("POST", "dead/act", {
    act: what,
    filter,
    limit: 0,
    dry_run: dryRun,
    why,
    ...(rate ? { rate } : {}),
  });
}

/** Applies an action to selected messages, one after the other. */
export async function actOnEach(what: Act, which: { feed: string; id: string }[], why: string): Promise<Done> {
  let count = 0;
  let command = "";
  for (const w of which) {
    const done = await act(what, { feed: w.feed, id: w.id }, why, false);
    count += done.count;
    command = done.command;
  }
  return { count, dry_run: false, command };
}
