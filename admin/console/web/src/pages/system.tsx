// Shared parts of the system pages.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, may } from "../api/client";
import type { Resource } from "../api/resource";
import type { DatabaseHealth, Problem as Trouble } from "../api/types";
import { t, translate } from "../i18n";
import { duration, parseTime, shellWord } from "../lib/format";
import { database } from "../lib/router";
import { Badge, type Column, Command, Empty, Icon, type IconName, Link, Problem, Skeleton } from "../ui";

/** Shows a resource: a placeholder, an error, an empty state, or the data. */
export function Loaded<T>(p: {
  of: Resource<T>;
  icon: IconName;
  title: string; // when there is nothing
  help?: ComponentChildren;
  tone?: "ok";
  rows?: number;
  children: (data: T) => JSX.Element;
}) {
  const { data, error, loading, reload } = p.of;
  const nothing = Array.isArray(data) && data.length === 0;
  return (
    <>
      {error && (
        <div class="sys-error">
          <Problem error={error} retry={reload} />
        </div>
      )}
      {loading && <Skeleton rows={p.rows ?? 6} />}
      {nothing && (
        <Empty icon={p.icon} title={p.title} tone={p.tone}>
          {p.help}
        </Empty>
      )}
      {data !== undefined && !nothing && p.children(data)}
    </>
  );
}

/** A problem in the user's language. */
export function troubleText(p: Trouble): string {
  const { seconds } = p.params;
  const params = {
    ...p.params,
    feed: p.feed ?? "",
    consumer: p.consumer ?? "",
    ...(typeof seconds === "number" ? { age: duration(seconds) } : {}),
  };
  return translate(`problem.${p.kind}`, params) ?? p.text;
}

/** A list of problems, each with a link to the page where it can be fixed. */
export function Troubles({ of }: { of: Trouble[] }) {
  if (of.length === 0) return null;
  return (
    <ul class="sys-troubles">
      {of.map((p) => (
        <li class={p.severity === "problem" ? "notice bad small" : "notice warn small"} key={p.kind}>
          <Icon name={p.severity === "problem" ? "dead" : "info"} size={14} />
          <span class="spacer">{troubleText(p)}</span>
          {p.page.startsWith("/feeds/") ? (
            p.kind !== "paused" && <Command text={p.command} />
          ) : (
            <Link to={p.page}>{t("overview.help.any")}</Link>
          )}
        </li>
      ))}
    </ul>
  );
}

/** The worst problem, as a label. */
export function Health({ paused, problems }: { paused?: boolean; problems: Trouble[] }) {
  const bad = problems.filter((p) => p.kind !== "paused");
  const title = bad.map(troubleText).join("\n");
  return (
    <span class="sys-health" title={title || undefined}>
      {paused && <Badge icon="pause">{t("feed.paused")}</Badge>}
      {bad.length > 0 ? (
        <Badge tone={bad.some((p) => p.severity === "problem") ? "bad" : "warn"} icon="dead">
          {t("feed.problem")}
        </Badge>
      ) : (
        !paused && (
          <Badge tone="ok" icon="check">
            {t("feed.ok")}
          </Badge>
        )
      )}
    </span>
  );
}

/** The flags that select each database: its name if there are several, otherwise its schema if that is not the default. */
const leading = signal<Record<string, string[]>>({});

/** A function that builds a command line for this database. Words are quoted where they must be. */
export function useCommand(): (command: string, words: (string | false | undefined)[], why?: string) => string {
  const db = database.value;
  useEffect(() => {
    if (db in leading.peek()) return;
    get<DatabaseHealth[]>("databases").then(
      (all) => {
        const one = db ? all.find((v) => v.name === db) : all[0];
        const schema = one?.schema && one.schema !== "postrider" ? ["--schema", shellWord(one.schema)] : [];
        leading.value = {
          ...leading.peek(),
          [db]: one && all.length > 1 ? ["--database", shellWord(one.name)] : schema,
        };
      },
      () => {}, // the command is right for most without it
    );
  }, [db]);
  const flags = leading.value[db] ?? [];
  return (command, words, why) =>
    [
      `postrider ${command}`,
      ...words.filter((w) => w !== false && w !== undefined).map((w) => shellWord(w as string)),
      ...(why ? ["--reason", shellWord(why)] : []),
      ...flags,
    ].join(" ");
}

/** A column with buttons, for operators only. */
export function forOperators<T>(column: Column<T>): Column<T>[] {
  return may("operator") ? [column] : [];
}

/** Drops the response of an action that is not about messages, so that no count is shown. */
export async function plain(p: Promise<unknown>): Promise<undefined> {
  await p;
  return undefined;
}

/** A debounced value. */
export function useSettled<T>(value: T, ms = 350): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/**
 * Debounces dry runs while the user types: after a delay only the last call continues. The others never settle,
 * because their result is obsolete.
 */
export function useLast(ms = 350): () => Promise<void> {
  const n = useRef(0);
  return async () => {
    const mine = ++n.current;
    await new Promise((r) => setTimeout(r, ms));
    if (mine !== n.current) await new Promise(() => {});
  };
}

/**
 * Relative times of a form, such as 1h. A dry run makes them absolute, so that the action and the command use the same
 * times as the dry run.
 */
export function useMoments(): { resolve: (...texts: string[]) => void; resolved: (text: string) => string } {
  const [known, set] = useState<Record<string, string>>({});
  const current = useRef(known);
  return {
    resolve: (...texts) => {
      const at = Date.now();
      current.current = Object.fromEntries(texts.map((text) => [text, parseTime(text, at)]));
      set(current.current);
    },
    resolved: (text) => current.current[text] ?? "",
  };
}

/** Numbers as ranges: 0–3, 7. */
export function ranges(numbers: number[]): string {
  const all = [...numbers].sort((a, b) => a - b);
  const out: string[] = [];
  for (let i = 0; i < all.length; i++) {
    const from = all[i]!;
    while (all[i + 1] === all[i]! + 1) i++;
    out.push(all[i] === from ? String(from) : `${from}–${all[i]}`);
  }
  return out.join(", ");
}
