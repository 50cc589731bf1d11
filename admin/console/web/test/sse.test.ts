import { expect, test } from "vitest";
import { backoff, Parser } from "../src/api/sse";

test("events may arrive in any pieces", () => {
  const text = ': hello\nid: 7\nevent: sample\ndata: {"a":\ndata: 1}\n\nid:8\r\ndata:x\r\n\r\nevent: none\n\n';
  for (let cut = 1; cut < text.length; cut++) {
    const p = new Parser();
    const events = [...p.push(text.slice(0, cut)), ...p.push(text.slice(cut))];
    expect(events).toEqual([
      { type: "sample", id: "7", data: '{"a":\n1}' },
      { type: "message", id: "8", data: "x" },
    ]);
  }
});

test("backoff grows and has an end", () => {
  expect(backoff(1, 0.5)).toBe(1000);
  expect(backoff(2, 0.5)).toBe(2000);
  expect(backoff(50, 0.5)).toBe(30_000);
});
