// The live stream: samples and overviews for the whole console, paused by the user or while the page is hidden.
import { effect, signal } from "@preact/signals";
import { database } from "../lib/router";
import { apiURL, get, me, signedOut } from "./client";
import { follow } from "./sse";
import type { Overview, Sample } from "./types";

export type Live = "connecting" | "live" | "reconnecting" | "polling" | "paused";

export const live = signal<Live>("connecting");
/** Paused by the user. */
export const paused = signal(false);
/** The latest overview, with the current problems. */
export const overview = signal<Overview | null>(null);
/** The newest sample. */
export const sample = signal<Sample | null>(null);
/** Changes whenever lists should be refetched. */
export const pulse = signal(0);
/** The last rates of each feed, for its spark line. */
export const history = signal<Map<string, number[]>>(new Map());

const every = 5_000;
const kept = 40;

/** Stores an overview from the stream or from polling. */
export function take(o: Overview): void {
  overview.value = o;
}

function remember(o: Overview): void {
  const next = new Map<string, number[]>();
  for (const f of o.feeds) next.set(f.name, [...(history.peek().get(f.name) ?? []), f.rate ?? 0].slice(-kept));
  history.value = next;
}

/** Starts the stream; called again for every database. */
export function startLive(): void {
  const hidden = signal(document.hidden);
  document.addEventListener("visibilitychange", () => {
    hidden.value = document.hidden;
    if (!document.hidden && !paused.peek()) pulse.value++;
  });

  let timer: ReturnType<typeof setInterval> | undefined;
  let stop: (() => void) | undefined;
  let at = "";
  let failed = false;
  // Poll while there is no stream. If that fails too, the server is down: only wait for it.
  const poll = () =>
    get<Overview>("overview").then(
      (o) => {
        take(o);
        if (failed) live.value = "polling";
      },
      () => {
        if (failed) live.value = "reconnecting";
      },
    );
  effect(() => {
    const off = paused.value || hidden.value || me.value === null || signedOut.value;
    const db = database.value;
    stop?.();
    clearInterval(timer);
    stop = undefined;
    if (db !== at) {
      at = db;
      overview.value = null;
      sample.value = null;
      history.value = new Map();
    }
    if (off) {
      live.value = "paused";
      return;
    }
    stop = follow({
      url: () => apiURL("events"),
      onState: (s) => {
        failed = s === "failed";
        if (s === "failed") poll();
        else live.value = s;
      },
      onStatus: (status) => {
        if (status === 401) signedOut.value = true;
      },
      onEvent: (e) => {
        if (e.type === "sample") sample.value = JSON.parse(e.data) as Sample;
        else if (e.type === "overview") take(JSON.parse(e.data) as Overview);
      },
    });
    timer = setInterval(() => {
      pulse.value++;
      if (failed || overview.peek() === null) poll();
      const o = overview.peek();
      if (o) remember(o);
    }, every);
  });
}
