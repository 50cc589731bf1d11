import { expect, test } from "vitest";
import type { SagaStep } from "../src/api/types";
import { arc } from "../src/pages/databases/ring";
import { position } from "../src/pages/databases/scale";
import { layout, stages } from "../src/pages/sagas/layout";

const step = (name: string, after: string[], state = "pending"): SagaStep => ({
  name,
  after,
  state,
  attempts: 0,
  current: false,
  compensates: true,
});

const trip = [
  step("seat", [], "done"),
  step("flight", ["seat"], "undone"),
  step("hotel", ["seat"], "stuck"),
  step("charge", ["flight", "hotel"], "failed"),
  step("mail", ["charge"]),
];

test("stages follow what comes before", () => {
  expect(stages(trip)).toEqual([0, 1, 1, 2, 3]);
  expect(stages([step("a", ["gone"]), step("b", ["a"])])).toEqual([0, 1]);
});

test("steps that wait for each other do not hang", () => {
  expect(stages([step("a", ["b"]), step("b", ["a"])])).toHaveLength(2);
  expect(stages([step("a", ["a"])])).toHaveLength(1);
});

test("boxes never overlap and fit the room", () => {
  for (const room of [1100, 800, 600, 360, 270]) {
    const d = layout(trip, room, true);
    expect(d.width).toBeLessThanOrEqual(room);
    for (const a of d.boxes)
      for (const b of d.boxes)
        if (a !== b) {
          const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
          expect(apart, `${a.step.name} and ${b.step.name} at ${room}`).toBe(true);
        }
  }
});

test("the way back leads over every stage that was reached", () => {
  expect(layout(trip, 1100, true).back.map((b) => b.state)).toEqual(["now", "next"]);
  expect(layout(trip, 1100, false).back).toEqual([]);
});

test("nothing but one step", () => {
  const d = layout([step("only", [])], 400, true);
  expect(d.arrows).toEqual([]);
  expect(d.back).toEqual([]);
});

test("ages on a scale grow and stay inside", () => {
  expect(position(0)).toBe(0);
  expect(position(300)).toBeLessThan(position(3600));
  expect(position(1e9)).toBe(1);
});

test("a full ring is drawn, though its ends meet", () => {
  expect(arc(0, 1)).not.toContain("NaN");
  expect(arc(0, 1)).toContain("0 1 1");
});
