// Lists. Rows are chosen with j and k or the arrows, and opened with Enter; see keys.ts.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { listKeys } from "../lib/keys";
import { navigate } from "../lib/router";
import { Icon } from "./icon";

export interface Column<T> {
  name: string; // heading
  cell: (row: T) => ComponentChildren;
  num?: boolean; // numbers stand at the right
  grow?: boolean; // takes the room that is left, and is cut off
  hide?: "narrow" | "medium"; // left out on screens narrower than 640 or 1000 px
  sort?: (a: T, b: T) => number; // makes the heading a button
}

/** A table. to makes rows links; select adds boxes. */
export function Table<T>(p: {
  label: string;
  rows: T[];
  columns: Column<T>[];
  id: (row: T) => string;
  to?: (row: T) => string;
  onOpen?: (row: T) => void;
  selected?: Set<string>;
  onSelect?: (s: Set<string>) => void;
  fresh?: Set<string>; // rows that have just come
  cards?: boolean; // on narrow screens each row is a small card
}) {
  const [sort, setSort] = useState<{ by: number; down: boolean } | null>(null);
  const [at, setAt] = useState<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const column = sort ? p.columns[sort.by] : undefined;
  const rows = column?.sort && sort ? [...p.rows].sort((a, b) => column.sort!(a, b) * (sort.down ? -1 : 1)) : p.rows;

  const open = (row: T) => {
    if (p.onOpen) p.onOpen(row);
    else if (p.to) navigate(p.to(row));
  };
  const toggle = (id: string) => {
    if (!p.selected || !p.onSelect) return;
    const next = new Set(p.selected);
    if (!next.delete(id)) next.add(id);
    p.onSelect(next);
  };

  // The list that was rendered last receives the keys.
  const state = useRef({ rows, at, open, toggle, id: p.id });
  state.current = { rows, at, open, toggle, id: p.id };
  useEffect(
    () =>
      listKeys({
        move: (by) => {
          const { rows, at, id } = state.current;
          if (rows.length === 0) return;
          const i = rows.findIndex((r) => id(r) === at);
          const next = i < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, i + by));
          setAt(id(rows[next]!));
          const tr = body.current?.rows[next];
          tr?.focus({ preventScroll: true });
          tr?.scrollIntoView({ block: "nearest" });
        },
        open: () => {
          const { rows, at, id, open } = state.current;
          const row = rows.find((r) => id(r) === at);
          if (row) open(row);
          return row !== undefined;
        },
        toggle: () => {
          const { at, toggle } = state.current;
          if (at !== null) toggle(at);
        },
      }),
    [],
  );

  const cls = (c: Column<T>) => [c.num && "r", c.grow && "grow", c.hide && `hide-${c.hide}`].filter(Boolean).join(" ");
  const opens = p.to !== undefined || p.onOpen !== undefined;
  const all = p.selected && rows.length > 0 && rows.every((r) => p.selected!.has(p.id(r)));
  return (
    <div class="table-wrap">
      <table class={["table", opens && "opens", p.cards && "cards"].filter(Boolean).join(" ")} aria-label={p.label}>
        <thead>
          <tr>
            {p.onSelect && (
              <th class="tick">
                <input
                  type="checkbox"
                  aria-label={t("list.all")}
                  checked={all}
                  onChange={() => p.onSelect!(all ? new Set() : new Set(rows.map(p.id)))}
                />
              </th>
            )}
            {p.columns.map((c, i) => (
              <th
                key={c.name}
                scope="col"
                class={cls(c)}
                aria-sort={sort?.by === i ? (sort.down ? "descending" : "ascending") : undefined}
              >
                {c.sort ? (
                  <button
                    type="button"
                    class="sort"
                    onClick={() =>
                      setSort(sort?.by === i ? (sort.down ? { by: i, down: false } : null) : { by: i, down: true })
                    }
                  >
                    {c.name}
                    {sort?.by === i && <Icon name={sort.down ? "down" : "up"} size={11} />}
                  </button>
                ) : (
                  c.name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => {
            const id = p.id(row);
            return (
              <tr
                key={id}
                tabIndex={-1}
                class={[at === id && "at", p.fresh?.has(id) && "fresh", p.selected?.has(id) && "selected"]
                  .filter(Boolean)
                  .join(" ")}
                onFocus={() => setAt(id)}
                onClick={(e) => {
                  if ((e.target as Element).closest("a, button, input, label, select, summary")) return;
                  if (window.getSelection()?.toString()) return;
                  if (opens) open(row);
                }}
              >
                {p.onSelect && (
                  <td class="tick">
                    <input
                      type="checkbox"
                      aria-label={t("list.select", { id })}
                      checked={p.selected?.has(id)}
                      onChange={() => toggle(id)}
                    />
                  </td>
                )}
                {p.columns.map((c) => (
                  <td key={c.name} class={cls(c)} data-label={c.name}>
                    {c.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
