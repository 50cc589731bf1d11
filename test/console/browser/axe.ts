// Checks that axe has no serious finding on any page. Both themes have the same structure, so only
// colors are checked in the second.
import { AxeBuilder } from "@axe-core/playwright";
import { expect, go, open, test } from "./fixtures.ts";
import { details, pages, scene } from "./scene.ts";
import { t } from "./texts.ts";

export function examine(theme: "light" | "dark"): void {
  test(`axe, ${theme}`, async ({ page, context, watch }) => {
    test.setTimeout(300_000);
    const found: string[] = [];
    const look = async (name: string) => {
      // There are no frames, and the rows of a table are alike.
      const axe = new AxeBuilder({ page }).setLegacyMode().exclude("tbody tr:nth-child(n+9)");
      if (theme === "dark") axe.withRules(["color-contrast"]);
      const { violations } = await axe.analyze();
      for (const v of violations.filter((v) => v.impact === "serious" || v.impact === "critical"))
        for (const n of v.nodes.slice(0, 5)) found.push(`${name}: ${v.id} at ${n.target.join(" ")}: ${n.failureSummary?.split("\n")[1]?.trim()}`);
    };
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await open(page, "?db=shop");
    await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
    for (const [name, path] of [...pages, ...details]) {
      await go(page, `${path || "overview"}?db=shop`);
      await look(name);
    }
    await go(page, `messages/${scene.ids.oversize}?db=shop`);
    await page.getByRole("button", { name: t("action.edit") }).click();
    await expect(page.getByRole("dialog")).toBeVisible();
    await look("Edit dialog");
    await context.clearCookies();
    watch.allow(/401/);
    await page.goto(scene.console);
    await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
    await look("Sign in");
    expect(found).toEqual([]);
  });
}
