import { expect, test } from "vitest";
import { match, strip, to } from "../src/lib/router";

test("strip takes off the prefix", () => {
  expect(strip("/", "/")).toBe("/");
  expect(strip("/messages/", "/")).toBe("/messages");
  expect(strip("/ops/postrider/messages/a%2Fb", "/ops/postrider/")).toBe("/messages/a%2Fb");
  expect(strip("/ops/postrider/", "/ops/postrider/")).toBe("/");
});

test("match", () => {
  expect(match("/messages/:id", "/messages/a%2Fb")).toEqual({ id: "a/b" });
  expect(match("/sagas/:name/:id", "/sagas/thanh%20to%C3%A1n/7")).toEqual({ name: "thanh toán", id: "7" });
  expect(match("/messages/:id", "/messages/%E0%A4%A")).toEqual({ id: "%E0%A4%A" });
  expect(match("/messages/:id", "/messages/")).toBeNull();
  expect(match("/messages", "/messages/1")).toBeNull();
});

test("to leaves out what is empty", () => {
  expect(to("/dead", { feed: "a b", type: "", key: undefined })).toBe("/dead?feed=a+b");
  expect(to("/dead")).toBe("/dead");
});
