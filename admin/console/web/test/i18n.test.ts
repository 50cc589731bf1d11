import { beforeAll, expect, test } from "vitest";
import type { Text } from "../src/i18n";
import { choose, startLang, t, translate } from "../src/i18n";
import { en } from "../src/i18n/en";
import { system } from "../src/i18n/en.system";
import { texts as vi } from "../src/i18n/vi.all";
import { texts as zh } from "../src/i18n/zh.all";

const english: Record<string, Text> = { ...en, ...system };
const forms = (text: Text) => (typeof text === "string" ? [text] : Object.values(text));
const names = (form: string) => [...new Set([...form.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!))].sort().join();

beforeAll(startLang);

test.each([
  ["vi", vi],
  ["zh", zh],
] as [string, Record<string, Text>][])("%s says everything, with the same parameters", (_, other) => {
  expect(Object.keys(other).sort()).toEqual(Object.keys(english).sort());
  for (const [key, text] of Object.entries(english)) {
    const want = names(forms(text).at(-1)!);
    for (const form of forms(other[key]!)) expect(`${key} ${names(form)}`).toBe(`${key} ${want}`);
  }
});

test("no text is left in English", () => {
  const same = Object.entries(english).filter(
    ([k, v]) => typeof v === "string" && v.length > 12 && (vi as Record<string, Text>)[k] === v,
  );
  expect(same.map(([k]) => k)).toEqual([]);
});

test("plurals and numbers", () => {
  expect(t("problem.dead", { n: 1, feed: "a" })).toBe("1 dead letter in feed a.");
  expect(t("problem.dead", { n: 12000, feed: "a" })).toBe("12,000 dead letters in feed a.");
});

test("a text from the daemon that lacks a parameter is not ours to say", () => {
  expect(translate("problem.late", { n: 3, feed: "a" })).toBeNull();
  expect(translate("problem.nonsense", {})).toBeNull();
});

test("choose", () => {
  expect(choose(["", "de-DE", "vi-VN", "en"])).toBe("vi");
  expect(choose(["zh-Hans-CN"])).toBe("zh");
  expect(choose(["fr"])).toBe("en");
});
