import { expect, test } from "vitest";
import { bytes, counted, duration, globals, num, parseTime, rate, relative, shellWord, short } from "../src/lib/format";

test("durations have at most two units", () => {
  expect([0, 0.0002, 0.021, 1.24, 42, 200, 3600, 5400, 90000, 86400 * 400].map(duration)).toEqual([
    "0 s",
    "<1 ms",
    "21 ms",
    "1.2 s",
    "42 s",
    "3m 20s",
    "1h",
    "1h 30m",
    "1d 1h",
    "400d",
  ]);
});

test("numbers", () => {
  expect(num(1234567)).toBe("1,234,567");
  expect(short(9999)).toBe("9,999");
  expect(short(48_210)).toBe("48.2k");
  expect([rate(0), rate(0.123), rate(12.34), rate(552.4)]).toEqual(["0", "0.12", "12.3", "552"]);
  expect([bytes(0), bytes(1023), bytes(1536), bytes(5 * 1024 ** 3)]).toEqual(["0 B", "1,023 B", "1.5 KiB", "5 GiB"]);
});

test("counts that ended early say so", () => {
  expect([counted(0), counted(9_999), counted(10_000), counted(10_000, 12), counted(7_000, 7_000)]).toEqual([
    "0",
    "9,999",
    "10,000+",
    "10,012+",
    "14,000",
  ]);
});

test("relative", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(relative(now - 3 * 60_000, now)).toBe("3 min ago");
  expect(relative(now + 2 * 3600_000, now)).toMatch(/^in 2/);
});

test("parseTime takes times and durations", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(parseTime("2h", now)).toBe("2026-11-15T10:00:00.000Z");
  expect(parseTime(" 1.5d ", now)).toBe("2026-11-14T00:00:00.000Z");
  expect(parseTime("2026-01-31T12:00:00Z", now)).toBe("2026-01-31T12:00:00.000Z");
  expect(parseTime("yesterday-ish", now)).toBe("");
});

test("globals are what a command says about the database", () => {
  expect(globals("postrider messages show 1 --schema ui_demo")).toBe(" --schema ui_demo");
  expect(globals("postrider dead ls --feed a --dsn 'host=x user=y' --schema b --yes")).toBe(
    " --dsn 'host=x user=y' --schema b",
  );
  expect(globals("postrider dead ls --feed a --database shop")).toBe(" --database shop");
  expect(globals("postrider doctor")).toBe("");
});

test("shell words are quoted where they must be", () => {
  expect(shellWord("order/42")).toBe("order/42");
  expect(shellWord("it's $(here)")).toBe("'it'\\''s $(here)'");
  expect(shellWord("")).toBe("''");
});
