// Tests of the console in a real browser. `go test ./console` in the module test starts the servers
// and runs them.
import { defineConfig } from "@playwright/test";
import { scene } from "./scene.ts";

export default defineConfig({
  testDir: scene.folder ?? "tests",
  outputDir: process.env.CONSOLE_OUTPUT,
  workers: 2,
  timeout: 180_000, // of a whole test, on a busy machine; each wait has its own limit
  expect: { timeout: 20_000 },
  reporter: [["list"]],
  forbidOnly: true,
  use: {
    baseURL: scene.console,
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    locale: "en-GB",
    timezoneId: "UTC",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-lcd-text"],
    },
  },
});
