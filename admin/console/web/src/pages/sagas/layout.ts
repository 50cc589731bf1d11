// Where the steps of a saga are drawn. Stages follow one another along the main axis, steps that run side by side stand
// across it. A narrow screen turns the main axis down.
import type { SagaStep } from "../../api/types";

export interface Box {
  step: SagaStep;
  stage: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Arrow {
  path: string;
  done: boolean; // it has been gone along
  head: boolean;
}

export interface Drawing {
  width: number;
  height: number;
  boxes: Box[];
  arrows: Arrow[];
  back: { path: string; state: "done" | "now" | "next" }[]; // the way of the compensation
}

const height = 58;
const wide = { most: 176, least: 132, side: 88 }; // of a box; least along the main axis, and side by side on a narrow screen
const between = { most: 56, least: 30, down: 40, cross: 16, side: 8 };
const rail = 34; // room for the way back

/** The stage of every step: one more than the last of those before it. Steps that name each other in a circle end up at 0. */
export function stages(steps: SagaStep[]): number[] {
  const at = new Map(steps.map((s, i) => [s.name, i]));
  const known: (number | undefined)[] = steps.map(() => undefined);
  const stage = (i: number, seen: Set<number>): number => {
    if (known[i] !== undefined) return known[i];
    if (seen.has(i)) return 0;
    seen.add(i);
    const before = steps[i]!.after.map((n) => at.get(n)).filter((n) => n !== undefined);
    const own = before.length === 0 ? 0 : 1 + Math.max(...before.map((n) => stage(n, seen)));
    known[i] = own;
    return own;
  };
  return steps.map((_, i) => stage(i, new Set()));
}

const over = new Set(["done", "undoing", "undone", "stuck", "skipped"]);
const back = new Set(["undoing", "undone", "stuck"]);

/** Lays a saga out in a room of that width. */
export function layout(steps: SagaStep[], room: number, compensates: boolean): Drawing {
  const stage = stages(steps);
  const n = Math.max(0, ...stage) + 1;
  const columns = Array.from({ length: n }, (_, k) => steps.filter((_, i) => stage[i] === k));
  const vertical = n * wide.least + (n - 1) * between.least > room;
  const spare = compensates ? rail : 0;
  const clamp = (v: number, least: number, most: number) => Math.max(least, Math.min(most, Math.floor(v)));
  const main = vertical
    ? between.down
    : clamp((room - n * wide.most) / Math.max(1, n - 1), between.least, between.most);
  const along = vertical ? height : clamp((room - (n - 1) * main) / n, wide.least, wide.most);
  const gap = vertical ? between.side : between.cross;
  // On a narrow screen those that stand side by side share the room; one alone has what it wants.
  const cross = columns.map((c) =>
    vertical ? clamp((room - spare - (c.length - 1) * gap) / Math.max(1, c.length), wide.side, wide.most) : height,
  );
  const spans = columns.map((c, k) => c.length * cross[k]! + (c.length - 1) * gap);
  const across = Math.max(...spans);

  const boxes: Box[] = [];
  const point = (m: number, c: number) => (vertical ? { x: c, y: m } : { x: m, y: c });
  const centre: number[][] = [];
  columns.forEach((column, k) => {
    const size = cross[k]!;
    const begin = (across - spans[k]!) / 2;
    centre.push(column.map((_, i) => begin + i * (size + gap) + size / 2));
    column.forEach((step, i) => {
      const place = point(k * (along + main), begin + i * (size + gap));
      boxes.push({ step, stage: k, ...place, width: vertical ? size : along, height });
    });
  });

  const arrows: Arrow[] = [];
  for (let k = 1; k < n; k++) {
    const from = (k - 1) * (along + main) + along;
    const to = k * (along + main) - 3;
    const middle = (from + to) / 2;
    const mid = across / 2;
    const doneBefore = columns[k - 1]!.map((s) => over.has(s.state));
    const reached = columns[k]!.map((s) => s.state !== "pending");
    const curve = (m1: number, c1: number, m2: number, c2: number) => {
      const h = (m1 + m2) / 2;
      const [a, b, c, d] = [point(m1, c1), point(h, c1), point(h, c2), point(m2, c2)];
      return `M${a.x} ${a.y}C${b.x} ${b.y} ${c.x} ${c.y} ${d.x} ${d.y}`;
    };
    const [last, next] = [centre[k - 1]!, centre[k]!];
    const add = (path: string, done: boolean, head: boolean) => arrows.push({ path, done, head });
    if (last.length > 1 && next.length > 1) {
      // All wait for all: they meet in the middle.
      for (const [i, c] of last.entries()) add(curve(from, c, middle, mid), doneBefore[i]!, false);
      for (const [i, c] of next.entries()) add(curve(middle, mid, to, c), reached[i]!, true);
    } else {
      for (const [i, a] of last.entries())
        for (const [j, b] of next.entries()) add(curve(from, a, to, b), doneBefore[i]! && reached[j]!, true);
    }
  }

  const way: Drawing["back"] = [];
  if (compensates) {
    const line = across + rail - 12;
    const place = (k: number) => k * (along + main) + along / 2;
    const bottom = (k: number) => Math.max(...centre[k]!) + cross[k]! / 2;
    const touched = columns.map((c, k) => (c.some((s) => s.state !== "pending") ? k : -1));
    const last = Math.max(0, ...touched);
    for (let k = last; k > 0; k--) {
      const a = [
        point(place(k), k === last ? bottom(k) + 3 : line),
        point(place(k), line),
        point(place(k - 1), line),
        point(place(k - 1), bottom(k - 1) + 6),
      ];
      const column = columns[k - 1]!;
      const undone = column.every((s) => s.state === "undone" || s.state === "skipped" || s.state === "cancelled");
      const state = undone ? "done" : column.some((s) => back.has(s.state)) ? "now" : "next";
      way.push({ path: `M${a.map((p) => `${p.x} ${p.y}`).join("L")}`, state });
    }
  }
  const long = n * along + (n - 1) * main;
  const total = point(long, across + spare);
  return { width: total.x, height: total.y, boxes, arrows, back: way };
}
