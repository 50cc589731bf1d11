// Tests of the pages in a real browser. `go test ./admissions` in the module test starts the
// servers and runs them.
import { defineConfig } from "@playwright/test";
import { scene } from "./scene.ts";

export default defineConfig({
  testDir: "tests",
  outputDir: process.env.ADMISSIONS_OUTPUT,
  workers: 2,
  fullyParallel: true,
  timeout: 180_000, // of a whole test, on a busy machine; each wait has its own limit
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  forbidOnly: true,
  use: {
    baseURL: scene.pages,
    browserName: "chromium",
    viewport: { width: 800, height: 720 },
    locale: "en-GB",
    timezoneId: "UTC",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-lcd-text"],
    },
  },
});
