// A user who looks at one database sees that another one needs attention, and gets there with one
// click.
import { expect, open, test } from "../fixtures.ts";

test("trouble in another database is seen", async ({ page }) => {
  await open(page, "?db=billing");
  const badge = page.getByRole("banner").getByRole("link", { name: /^shop: [0-9]+ problems?$/ });
  await expect(badge).toBeVisible({ timeout: 5_000 });
  await badge.click();
  await expect(page).toHaveURL(/db=shop/);
  await expect(page.getByRole("combobox", { name: "Database" })).toHaveValue("shop");
});
