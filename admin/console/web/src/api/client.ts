// The HTTP client: addresses relative to the console's prefix, errors as problem+json, 401 as "sign in".
import { signal } from "@preact/signals";
import { database } from "../lib/router";
import type { Me, Role } from "./types";

/** An error of the server, with the next step. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly next?: string,
  ) {
    super(detail || title);
  }
}

/** The signed-in user; null until known. */
export const me = signal<Me | null>(null);
/** Set when the server requires a sign-in. */
export const signedOut = signal(false);

const ranks: Record<Role, number> = { viewer: 1, operator: 2, admin: 3 };

/** Whether the user's role includes another. */
export function may(role: Role): boolean {
  return me.value !== null && ranks[me.value.role] >= ranks[role];
}

export type Query = Record<string, string | number | boolean | undefined>;

/** The address of an API path such as "messages", with its parameters and the database. */
export function apiURL(path: string, query: Query = {}): URL {
  const url = new URL(`api/v1/${path.replace(/^\//, "")}`, document.baseURI);
  for (const [k, v] of Object.entries(query)) if (v !== undefined && v !== "") url.searchParams.set(k, String(v));
  if (database.value) url.searchParams.set("db", database.value);
  return url;
}

/** Joins parts to a path, each escaped. */
export function segments(...parts: (string | number)[]): string {
  return parts.map((p) => encodeURIComponent(p)).join("/");
}

async function request<T>(method: string, url: URL, body?: unknown, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(url, {
      method,
      signal,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        // The server requires it for every change: other sites cannot send it.
        ...(method === "GET" ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new ApiError(0, "unreachable", "");
  }
  if (answer.status === 401) signedOut.value = true;
  if (!answer.ok) throw await problem(answer);
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

/** Parses an error response. */
export async function problem(answer: Response): Promise<ApiError> {
  try {
    const p = (await answer.json()) as { title?: string; detail?: string; next?: string };
    return new ApiError(answer.status, p.title ?? answer.statusText, p.detail ?? "", p.next);
  } catch {
    // A proxy responds when the server is down.
    const away = answer.status >= 502 && answer.status <= 504;
    return new ApiError(away ? 0 : answer.status, answer.statusText || String(answer.status), "");
  }
}

/** GET of an API path. */
export function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return request<T>("GET", apiURL(path, query), undefined, signal);
}

/** POST, PUT or DELETE to an API path. */
export function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body: unknown = {}): Promise<T> {
  return request<T>(method, apiURL(path), body);
}

/** A request outside the API, such as "auth/session". */
export function beside<T>(method: string, path: string, body?: unknown): Promise<T> {
  return request<T>(method, new URL(path, document.baseURI), body);
}
