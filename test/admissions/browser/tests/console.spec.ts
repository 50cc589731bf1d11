// What an operator sees when an application is stuck.
import { expect, fill, picture, send, test } from "../applicant.ts";
import { scene } from "../scene.ts";

test("an application for a programme without a fee is a dead letter", async ({ page }) => {
  await fill(page, "alchemy");
  await send(page);
  await expect(page.getByRole("progressbar")).toHaveAttribute("aria-valuenow", "50");
  await picture(page, "stuck-light");
  await page.setViewportSize({ width: 1440, height: 600 });
  await page.goto(`${scene.console}dead`);
  await expect(page.getByText("no fee is set for programme alchemy").first()).toBeVisible();
  await picture(page, "console-dead-light");
});
