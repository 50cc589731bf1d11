import { expect, test } from "vitest";
import { diff } from "../src/lib/diff";
import { headerLines, parseHeaders } from "../src/pages/dead/headers";
import { parts } from "../src/ui/text";

test("characters that hide or turn are shown", () => {
  expect(parts("a\u202eb")).toEqual([
    { text: "a", odd: false },
    { text: "U+202E", odd: true },
    { text: "b", odd: false },
  ]);
  for (const c of ["\0", "\u001b", "\u200b", "\u2066", "\ufeff", "\u{e0041}", "\ud800", "\r"])
    expect(parts(`x${c}`)[1]?.odd).toBe(true);
});

test("other languages, tabs and lines are left alone", () => {
  for (const s of ["Nguyễn Thị Hồng", "龙井茶", "a\tb\nc", "👩🏽 é", "עברית"])
    expect(parts(s)).toEqual([{ text: s, odd: false }]);
});

test("diff", () => {
  expect(diff("a\nb\nc", "a\nx\nc")).toEqual([
    { sign: " ", text: "a" },
    { sign: "-", text: "b" },
    { sign: "+", text: "x" },
    { sign: " ", text: "c" },
  ]);
  expect(diff("a\nb", "a\nb").every((c) => c.sign === " ")).toBe(true);
  const after = diff("1\n2\n3\n4", "0\n1\n3\n5\n4")
    .filter((c) => c.sign !== "-")
    .map((c) => c.text);
  expect(after.join("\n")).toBe("0\n1\n3\n5\n4");
});

test("headers go there and back", () => {
  const h = { traceparent: "00-1-2-01", url: "http://a:1/b", empty: "" };
  expect(parseHeaders(headerLines(h))).toEqual(h);
});
