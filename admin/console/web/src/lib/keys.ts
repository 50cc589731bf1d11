// The keyboard: one listener for the whole console. Nothing is taken while somebody types or a dialog is open.
import { navigate } from "./router";

interface List {
  move: (by: number) => void;
  open: () => boolean;
  toggle: () => void;
}

const lists: List[] = [];

/** Gives a list the keys j, k, Enter and x, until the returned function is called. */
export function listKeys(list: List): () => void {
  lists.push(list);
  return () => {
    const i = lists.indexOf(list);
    if (i >= 0) lists.splice(i, 1);
  };
}

/** Pages that "g" and a letter lead to. */
export const jumps: Record<string, string> = {
  o: "/",
  m: "/messages",
  d: "/dead",
  b: "/keys",
  f: "/feeds",
  r: "/relays",
  c: "/consumers",
  i: "/idempotency",
  s: "/sagas",
  p: "/reconcilers",
  l: "/replays",
  v: "/databases",
  h: "/doctor",
  a: "/audit",
};

function typing(e: KeyboardEvent): boolean {
  const el = e.target as HTMLElement;
  return el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName);
}

/** Begins to listen. palette, help and pause are what Ctrl+K, ? and . do. */
export function startKeys(on: { palette: () => void; help: () => void; pause: () => void }): void {
  let g = 0;
  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") {
      e.preventDefault();
      on.palette();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (typing(e)) {
      if (e.key === "Escape") (e.target as HTMLElement).blur();
      return;
    }
    const list = lists[lists.length - 1];
    const done = () => e.preventDefault();
    if (e.timeStamp - g < 1200 && jumps[e.key]) {
      g = 0;
      navigate(jumps[e.key]!);
      return done();
    }
    g = 0;
    switch (e.key) {
      case "g":
        g = e.timeStamp;
        return;
      case "?":
        on.help();
        return done();
      case ".":
        on.pause();
        return done();
      case "/": {
        const field = document.querySelector<HTMLElement>("[data-search]");
        if (field) field.focus();
        else on.palette();
        return done();
      }
      case "j":
        list?.move(1);
        return done();
      case "k":
        list?.move(-1);
        return done();
      case "x":
        list?.toggle();
        return;
      case "Enter":
        if (!(e.target as Element).closest("a, button, summary") && list?.open()) done();
    }
  });
}
