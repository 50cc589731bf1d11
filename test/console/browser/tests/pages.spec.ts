// Every page opens and shows its data without errors or side effects.
import { expect, open, settled, test } from "../fixtures.ts";
import { details, pages } from "../scene.ts";

const seen: Record<string, (string | RegExp)[]> = {
  Overview: ["default", "partners", "billing", "warehouse"],
  Messages: [/order\.placed|payment\.captured|shipment\.booked/],
  "Dead letters": [/answered 422/, /answered 400/, /answered 413/, "legacy.import"],
  "Blocked keys": ["account/KH-spare", "loyalty.earned"],
  Feeds: ["default", "partners"],
  Relays: ["default", "partners"],
  Consumers: ["billing", "warehouse"],
  Sagas: ["DH-stuck", "DH-wait", "fulfil-order", "DH-undone"],
  Idempotency: ["POST /orders", /pay-00\d\d/],
  Reconcilers: ["unbilled-orders"],
  Databases: ["shop", "billing", /PostgreSQL 18|18\./],
  Doctor: [],
  Audit: [],
  Message: ["shipment.oversize", /answered 413/, "Cần Thơ"],
  Feed: ["default", "Rewind"],
  Saga: ["DH-stuck", "refund window is closed", "Phạm Hữu Nghĩa", "9007199254740993"],
};

test("the rail leads to every page, and each shows its data", async ({ page }) => {
  await open(page, "?db=shop");
  const rail = page.getByRole("navigation", { name: "Main" }).first();
  for (const [name, path] of pages) {
    await rail.getByRole("link", { name, exact: false }).first().click();
    await settled(page);
    expect(new URL(page.url()).pathname).toBe(`/${path}`);
    await expect(page).toHaveTitle(/Postrider/);
    for (const text of seen[name] ?? []) await expect(page.locator("main").getByText(text).filter({ visible: true }).first(), `${name}: ${text}`).toBeVisible();
    await expect(page.locator("main [role=alert]").filter({ hasText: /does not answer|not allow/ })).toHaveCount(0);
  }
});

for (const [name, path] of details) {
  test(`${name} shows its data`, async ({ page }) => {
    await open(page, `${path}?db=shop`);
    for (const text of seen[name] ?? []) await expect(page.locator("main").getByText(text).filter({ visible: true }).first(), `${name}: ${text}`).toBeVisible();
  });
}

test("another database can be chosen", async ({ page }) => {
  await open(page, "messages");
  // Databases are sorted by name.
  await page.getByLabel("Database").selectOption("billing");
  await settled(page);
  await expect(page.locator("main").getByText("ledger.posted").first()).toBeVisible();
  await page.getByLabel("Database").selectOption("shop");
  await settled(page);
  await expect(page.locator("main").getByText(/order\.placed|payment\.captured/).first()).toBeVisible();
});

test("an unknown page says so", async ({ page }) => {
  await open(page, "no/such/page");
  await expect(page.getByRole("heading", { name: "Page not found", level: 1 })).toBeVisible();
});
