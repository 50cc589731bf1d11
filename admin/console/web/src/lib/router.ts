// A small router on the history API. Paths are relative to <base>, so that the console works under any prefix.
import { computed, signal } from "@preact/signals";

/** Where the console is mounted, such as "/" or "/postrider/". */
export function basePath(): string {
  return new URL(document.baseURI).pathname.replace(/[^/]*$/, "");
}

/** The part of a browser's path that is ours: without the prefix, and without a slash at the end. */
export function strip(pathname: string, base: string): string {
  const rest = pathname.startsWith(base) ? pathname.slice(base.length) : pathname.replace(/^\//, "");
  return `/${rest.replace(/\/+$/, "")}`;
}

/** Matches "/messages/:id" against a path; null if it does not fit. A part that is not valid UTF-8 is left as it is. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split("/");
  const have = path.split("/");
  if (want.length !== have.length) return null;
  const params: Record<string, string> = {};
  for (let i = 0; i < want.length; i++) {
    const w = want[i]!;
    const h = have[i]!;
    if (w.startsWith(":")) {
      if (h === "") return null;
      params[w.slice(1)] = decode(h);
    } else if (w !== h) return null;
  }
  return params;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  if (typeof document === "undefined") return { path: "/", query: new URLSearchParams() };
  return { path: strip(location.pathname, basePath()), query: new URLSearchParams(location.search) };
}

/** Where we are. */
export const place = signal<Place>(here());
export const path = computed(() => place.value.path);
export const query = computed(() => place.value.query);

/** The selected database; empty: the first. It is part of every address. */
export const database = computed(() => query.value.get("db") ?? "");

/** A path as an address for href, with the database kept. */
export function href(to: string): string {
  const [p = "/", q = ""] = to.split("?", 2);
  const params = new URLSearchParams(q);
  if (database.value && !params.has("db")) params.set("db", database.value);
  const search = params.toString();
  return basePath() + p.replace(/^\//, "") + (search ? `?${search}` : "");
}

/** Goes to a path such as "/dead?feed=orders". */
export function navigate(to: string, how: "push" | "replace" = "push"): void {
  const url = href(to);
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  place.value = here();
  if (how === "push") window.scrollTo(0, 0);
}

/** Changes parameters of the address and stays on the page. Empty values are removed. */
export function setQuery(changes: Record<string, string | undefined>, how: "push" | "replace" = "replace"): void {
  const params = new URLSearchParams(query.value);
  for (const [k, v] of Object.entries(changes)) {
    if (v) params.set(k, v);
    else params.delete(k);
  }
  const search = params.toString();
  const url = location.pathname + (search ? `?${search}` : "");
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  place.value = here();
}

/** Builds "/messages?type=x" from parts; empty values are left out. */
export function to(p: string, params: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) search.set(k, v);
  const s = search.toString();
  return s ? `${p}?${s}` : p;
}

/** Begins to follow the browser's back and forward, and plain clicks on our own links. */
export function startRouter(): void {
  window.addEventListener("popstate", () => {
    place.value = here();
  });
  document.addEventListener("click", (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const link = (e.target as Element).closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    const base = basePath();
    if (!link.pathname.startsWith(base) || link.pathname.startsWith(`${base}auth/`)) return;
    e.preventDefault();
    history.pushState(null, "", link.href);
    place.value = here();
    window.scrollTo(0, 0);
  });
}
