// Data prepared by the Go test.
import { readFileSync } from "node:fs";

interface Scene {
  folder?: string; // with the tests to run; default "tests"
  console: string; // addresses; they end with a slash
  proxy: string;
  control: string;
  tokens: { linh: string; minh: string; wei: string };
  ids: Record<string, string>;
  keys: Record<string, string>;
  odd: { text: string; id: string }[];
  big: Record<string, string>;
}

/** What signon_test.go has prepared for the folder signon. */
export interface SignOn {
  console: string;
  issuer: string;
  dead: string; // ID of a dead letter
}

if (!process.env.CONSOLE_SCENE) throw new Error("these tests are run by: go test ./console, in the module test");
export const scene: Scene = JSON.parse(readFileSync(process.env.CONSOLE_SCENE, "utf8"));

/** Changes the world outside of the browser; see control_test.go. */
export async function control(path: string): Promise<string> {
  const answer = await fetch(`${scene.control}/${path}`, { method: "POST" });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return text;
}

/** Names of the pages, and their paths. */
export const pages: [name: string, path: string][] = [
  ["Overview", ""],
  ["Messages", "messages"],
  ["Dead letters", "dead"],
  ["Blocked keys", "keys"],
  ["Feeds", "feeds"],
  ["Relays", "relays"],
  ["Consumers", "consumers"],
  ["Replays", "replays"],
  ["Sagas", "sagas"],
  ["Idempotency", "idempotency"],
  ["Reconcilers", "reconcilers"],
  ["Databases", "databases"],
  ["Doctor", "doctor"],
  ["Audit", "audit"],
];

/** Pages of one thing. */
export const details: [name: string, path: string][] = [
  ["Message", `messages/${scene.ids.oversize}`],
  ["Feed", "feeds/default"],
  ["Saga", "sagas/fulfil-order/DH-stuck"],
];
