// Data of a page: fetched when needed, refetched after changes, and released when the page is left.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { database } from "../lib/router";
import { ApiError, get, type Query } from "./client";
import { pulse } from "./live";
import type { Page } from "./types";

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean; // for the first time: show a skeleton
  reload: () => void;
}

function asError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, "failed", e instanceof Error ? e.message : String(e));
}

/**
 * GETs a path; null fetches nothing. It refetches when path, query or database change, and every few seconds while the
 * console is live, unless still is set. Previous data stays while it refetches, and when that fails.
 */
export function useResource<T>(path: string | null, query: Query = {}, still = false): Resource<T> {
  const key = path === null ? null : JSON.stringify([path, query, database.value]);
  const [state, set] = useState<{ key: string | null; data?: T; error?: ApiError }>({ key: null });
  const [n, again] = useState(0);
  const beat = still ? 0 : pulse.value;
  const busy = useRef<string | null>(null);

  useEffect(() => {
    if (key === null || path === null) return;
    // Wait for a slow response; only a different request replaces it.
    if (busy.current === key) return;
    busy.current = key;
    const abort = new AbortController();
    aborts.current?.abort();
    aborts.current = abort;
    get<T>(path, query, abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        busy.current = null;
        set({ key, data });
      },
      (e: unknown) => {
        if (abort.signal.aborted) return;
        busy.current = null;
        set((old) => ({ key, data: old.key === key ? old.data : undefined, error: asError(e) }));
      },
    );
  }, [key, beat, n]);

  const aborts = useRef<AbortController | null>(null);
  useEffect(() => () => aborts.current?.abort(), []);

  const fresh = state.key === key;
  const reload = useCallback(() => {
    busy.current = null;
    again((x) => x + 1);
  }, []);
  return {
    data: fresh ? state.data : undefined,
    error: fresh ? state.error : undefined,
    loading: key !== null && !(fresh && (state.data !== undefined || state.error !== undefined)),
    reload,
  };
}

export interface Paged<T> extends Resource<T[]> {
  until: string | undefined; // a search ended here, and more goes on with it
  more: (() => void) | undefined; // loads the next page behind what is there
  busy: boolean;
}

/** GETs a list by pages. The first page stays up to date while it is the only one; still as in useResource. */
export function usePages<T>(path: string, query: Query = {}, still = false): Paged<T> {
  const key = JSON.stringify([path, query, database.value]);
  const [rest, setRest] = useState<{ key: string; items: T[]; cursor?: string; until?: string } | null>(null);
  const [failed, setFailed] = useState<{ key: string; error: ApiError } | null>(null);
  const [busy, setBusy] = useState(false);
  const extended = rest?.key === key;
  const first = useResource<Page<T>>(path, query, still || extended);
  const end = extended ? rest : first.data;
  const cursor = end?.cursor;

  const more = cursor
    ? () => {
        setBusy(true);
        setFailed(null);
        get<Page<T>>(path, { ...query, cursor }).then(
          (p) => {
            setBusy(false);
            setRest((old) => ({ ...p, key, items: [...(old?.key === key ? old.items : []), ...p.items] }));
          },
          (e: unknown) => {
            setBusy(false);
            setFailed({ key, error: asError(e) });
          },
        );
      }
    : undefined;

  return {
    data: first.data ? (extended ? [...first.data.items, ...rest.items] : first.data.items) : undefined,
    until: cursor ? end?.until : undefined,
    error: first.error ?? (failed?.key === key ? failed.error : undefined),
    loading: first.loading,
    busy,
    more,
    reload: () => {
      setRest(null);
      setFailed(null);
      first.reload();
    },
  };
}
