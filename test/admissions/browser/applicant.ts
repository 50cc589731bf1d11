// An applicant on the pages, with checks for what must not happen there.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import { small } from "../../console/browser/png.ts";
import { scene } from "./scene.ts";

export { expect };

/** A page that fails its test when a script fails, a policy is violated, or another site is asked for something. */
export const test = base.extend<{ wrong: string[] }>({
  wrong: [
    async ({ page }, use) => {
      const wrong: string[] = [];
      const origins = [scene.pages, scene.paydesk, scene.console].map((a) => new URL(a).origin);
      page.on("console", (m) => {
        if (m.type() === "error" || m.type() === "warning") wrong.push(`console: ${m.text()}`);
      });
      page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
      page.on("request", (r) => {
        if (!origins.includes(new URL(r.url()).origin)) wrong.push(`request to ${r.url()}`);
      });
      await use(wrong);
      expect(wrong, "what must not happen on a page").toEqual([]);
    },
    { auto: true },
  ],
});

/** Fills in the form. */
export async function fill(page: Page, programme: string, files = 1): Promise<void> {
  await page.goto("");
  await page.getByLabel("Name").fill("Nguyễn Thị Lan");
  await page.getByLabel("E-mail").fill("lan@example.org");
  await page.getByLabel("Programme").selectOption(programme);
  await page.getByLabel("Documents").setInputFiles(
    Array.from({ length: files }, (_, i) => ({
      name: `certificate-${i + 1}.txt`,
      mimeType: "text/plain",
      buffer: Buffer.from(`Certificate ${i + 1} of Nguyễn Thị Lan\n`),
    })),
  );
}

/** Sends the form, and waits for the page of the application. */
export async function send(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/\/applications\/[0-9a-f-]{36}\/status$/);
}

/** Waits until the bar stands at so many percent. */
export async function reached(page: Page, percent: number): Promise<void> {
  await expect(page.getByRole("progressbar")).toHaveAttribute("aria-valuenow", String(percent));
}

/** The pictures that docs/admissions.md shows. */
const shown = ["form-light", "status-light", "status-dark", "pay-light", "completed-light", "completed-narrow", "console-dead-light"];

/** Keeps a picture for people to look at, and with UPDATE_SCREENSHOTS=1 for docs/admissions. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => document.fonts.ready);
  const png = small(await page.screenshot({ animations: "disabled" }));
  const folders = [scene.artifacts];
  if (process.env.UPDATE_SCREENSHOTS === "1" && shown.includes(name)) folders.push(join(import.meta.dirname, "../../../docs/admissions"));
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.png`), png);
  }
}

/** Serious findings of axe on a page. */
export async function barriers(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .flatMap((v) => v.nodes.map((n) => `${v.id} at ${n.target.join(" ")}: ${n.failureSummary}`));
}

/** Whether something stands out beyond the right edge. */
export async function overflows(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}
