// Problems in the user's language.
import type { Problem } from "../api/types";
import { type Params, translate } from "../i18n";
import { counted, duration, most, num } from "./format";

/** A problem as a sentence: translated if the kind and all parameters are known, otherwise the server's text. */
export function sentence(p: Problem): string {
  const params: Params = { ...p.params, feed: p.feed ?? p.params.feed, consumer: p.consumer ?? p.params.consumer };
  if (typeof p.params.seconds === "number") params.age = duration(p.params.seconds).replaceAll(" ", "\u00a0");
  const own = translate(`problem.${p.kind}`, params);
  const n = p.params.n;
  const capped = p.kind !== "late" && typeof n === "number" && n >= most;
  if (own !== null) return capped ? own.replace(num(n), counted(n)) : own;
  const who = p.feed ?? p.consumer;
  return who ? `${who}: ${p.text}` : p.text;
}
