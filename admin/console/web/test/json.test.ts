import { describe, expect, test } from "vitest";
import { indented, isJSON, tokens } from "../src/lib/json";

const kinds = (text: string) =>
  tokens(text)
    .filter((t) => t.kind !== "space")
    .map((t) => `${t.kind}:${t.text}`);

describe("tokens", () => {
  test("numbers stay as they were written", () => {
    const text = '{"a": 12345678901234567890, "b": 1.10, "c": -0.0, "d": 1E+400}';
    expect(
      tokens(text)
        .map((t) => t.text)
        .join(""),
    ).toBe(text);
    expect(kinds(text).filter((k) => k.startsWith("number"))).toEqual([
      "number:12345678901234567890",
      "number:1.10",
      "number:-0.0",
      "number:1E+400",
    ]);
  });

  test("keys are told from strings", () => {
    expect(kinds('{"a" : "b:c", "d": [true, null]}')).toEqual([
      "mark:{",
      'key:"a"',
      "mark::",
      'string:"b:c"',
      "mark:,",
      'key:"d"',
      "mark::",
      "mark:[",
      "word:true",
      "mark:,",
      "word:null",
      "mark:]",
      "mark:}",
    ]);
  });

  test.each([
    "",
    "{",
    '"open',
    '"a\\"b"',
    "\\u0000 x",
    "<script>",
    '{"a": 1',
    "trueish",
    "\ud800",
    "1-2-3 ::: }}",
    '"two\nlines"',
  ])("nothing is lost of %j", (text) => {
    expect(
      tokens(text)
        .map((t) => t.text)
        .join(""),
    ).toBe(text);
  });

  test("long texts take no long time", () => {
    const text = `[${'"\\\\\\"abc",'.repeat(10_000)}`;
    const begin = performance.now();
    tokens(text);
    expect(performance.now() - begin).toBeLessThan(2000);
  });
});

test("indented changes nothing but space", () => {
  const text = '{"n":9007199254740993,"price": 1234567890123456789.10,"none":{},"list":[ ],"of":[1,{"a":"b, c: {}"}]}';
  expect(indented(text)).toBe(`{
  "n": 9007199254740993,
  "price": 1234567890123456789.10,
  "none": {},
  "list": [],
  "of": [
    1,
    {
      "a": "b, c: {}"
    }
  ]
}`);
  expect(indented('{"a":1}', "  ")).toBe('{\n    "a": 1\n  }');
});

test("isJSON", () => {
  expect(isJSON("1.10")).toBe(true);
  expect(isJSON("{,}")).toBe(false);
});
