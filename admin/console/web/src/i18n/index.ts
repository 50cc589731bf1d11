// Texts in the user's language. All languages have the same keys: the compiler sees to it.
import { batch, computed, signal } from "@preact/signals";
import { en } from "./en";
import { system } from "./en.system";

/** A text, or one for each plural category of its number n. {name} stands for a parameter. */
export type Text = string | { one?: string; other: string };
export type Params = Record<string, string | number | undefined>;

const english = { ...en, ...system };
export type Key = keyof typeof english;
export type Lang = "en" | "vi" | "zh";

/** Other languages are loaded when they are wanted. */
const load: Record<Lang, () => Promise<Record<Key, Text>>> = {
  en: async () => english,
  vi: async () => (await import("./vi.all")).texts,
  zh: async () => (await import("./zh.all")).texts,
};
const texts = signal<Record<Key, Text>>(english);

/** The languages, by their own names. */
export const languages: Record<Lang, string> = { en: "English", vi: "Tiếng Việt", zh: "简体中文" };

const stored = typeof localStorage === "undefined" ? null : localStorage.getItem("postrider.lang");

/** The best of our languages for a list of wishes. */
export function choose(wishes: readonly string[]): Lang {
  for (const w of wishes) {
    const short = w.toLowerCase().split("-")[0] as Lang;
    if (short in languages) return short;
  }
  return "en";
}

const wished = choose([stored ?? "", ...(typeof navigator === "undefined" ? [] : (navigator.languages ?? []))]);

/** The language of what is seen. */
export const lang = signal<Lang>("en");

async function use(to: Lang): Promise<void> {
  const all = await load[to]();
  batch(() => {
    texts.value = all;
    lang.value = to;
  });
}

/** Takes the language of the user's choice, or else of the browser. English if it cannot be loaded. */
export function startLang(): Promise<void> {
  return use(wished).catch(() => {});
}

/** Sets the language for now and for later visits. */
export async function setLang(to: Lang): Promise<void> {
  await use(to);
  localStorage.setItem("postrider.lang", to);
}

/** The locale for Intl. English has days before months, and 24 hours, as logs do. */
export const locale = computed(() => ({ en: "en-GB", vi: "vi-VN", zh: "zh-CN" })[lang.value]);

const plurals = computed(() => new Intl.PluralRules(locale.value));
const numbers = computed(() => new Intl.NumberFormat(locale.value));

/** The text of a key, with its parameters filled in; numbers are written as the language does. */
export function t(key: Key, params?: Params): string {
  return fill(texts.value[key], params) ?? key;
}

/** Whether there is a text of that name: for names that come from the daemon. */
export function known(key: string): key is Key {
  return key in english;
}

/** As t, for a key from the daemon; null if there is no such text or one of its parameters is missing. */
export function translate(key: string, params: Params): string | null {
  return known(key) ? fill(texts.value[key], params, true) : null;
}

function fill(text: Text, params: Params = {}, strict = false): string | null {
  let form: string;
  if (typeof text === "string") form = text;
  else {
    const n = Number(params.n ?? params.count ?? 0);
    form = (plurals.value.select(n) === "one" ? text.one : undefined) ?? text.other;
  }
  let missing = false;
  const out = form.replace(/\{(\w+)\}/g, (_, name: string) => {
    const v = params[name];
    if (v === undefined) missing = true;
    return typeof v === "number" ? numbers.value.format(v) : (v ?? "");
  });
  return strict && missing ? null : out;
}
