// Data prepared by the Go test.
import { readFileSync } from "node:fs";

interface Scene {
  pages: string; // addresses; they end with a slash
  paydesk: string;
  console: string;
  artifacts: string; // the folder for screenshots
}

if (!process.env.ADMISSIONS_SCENE) throw new Error("these tests are run by: go test ./admissions, in the module test");
export const scene: Scene = JSON.parse(readFileSync(process.env.ADMISSIONS_SCENE, "utf8"));
