// The console by keyboard, and in other languages.
import { expect, go, open, settled, test } from "../fixtures.ts";
import { pages, scene } from "../scene.ts";
import { keys, t } from "../texts.ts";

test("palette, help, search and jumps", async ({ page }) => {
  await open(page, "?db=shop");
  await page.keyboard.press("Control+k");
  await expect(page.getByRole("dialog", { name: t("palette.title") })).toBeVisible();
  await page.keyboard.type("aud");
  await page.keyboard.press("Enter");
  await settled(page);
  await expect(page.getByRole("heading", { name: "Audit", level: 1 })).toBeVisible();

  await page.keyboard.press("Control+k");
  await page.keyboard.type(scene.ids.oversize!);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "shipment.oversize" })).toBeVisible();
  expect(new URL(page.url()).search).toContain("db=shop");

  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: t("help.title") })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);

  for (const [key, path] of Object.entries({ m: "messages", d: "dead", b: "keys", f: "feeds", s: "sagas", a: "audit", o: "" })) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await expect(page).toHaveURL(new RegExp(`^[^?]*/${path}(\\?|$)`));
  }

  await open(page, "messages?db=shop");
  await page.keyboard.press("/");
  await expect(page.getByLabel("Key", { exact: true })).toBeFocused();
  await page.keyboard.type("account/KH-spare");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/key=account/);
  await expect(page.locator("tbody tr").filter({ hasText: "loyalty.earned" })).toHaveCount(1);
});

test("rows are chosen and opened", async ({ page }) => {
  await open(page, "dead?db=shop&feed=partners&type=shipment.customs");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await expect(page.locator("tbody tr").first()).toBeFocused();
  await page.keyboard.press("x");
  await expect(page.getByRole("toolbar", { name: t("dead.selected", { n: 1 }) })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/messages\//);
  await settled(page);
  await expect(page.getByRole("heading", { name: "shipment.customs", level: 1 })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole("heading", { name: "Dead letters", level: 1 })).toBeVisible();
});

test("a dialog keeps the focus and gives it back", async ({ page }) => {
  await open(page, "feeds/partners?db=shop");
  const button = page.getByRole("button", { name: "Pause", exact: true });
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel(t("action.reason"))).toBeFocused();
  for (let n = 0; n < 12; n++) {
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement === document.body || document.activeElement?.closest("dialog") !== null)).toBe(true);
  }
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await expect(button).toBeFocused();
});

for (const [lang, name, title] of [
  ["vi", "Tiếng Việt", "Nhật ký"],
  ["zh-CN", "简体中文", "审计"],
] as const) {
  test(`language ${lang}`, async ({ page }) => {
    await open(page, "audit?db=shop");
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Language").selectOption({ label: name });
    await expect(page.locator("html")).toHaveAttribute("lang", lang);
    await expect(page.locator("main h1")).toContainText(title, { ignoreCase: true });
    const bare: string[] = [];
    for (const [, path] of pages) {
      await go(page, `${path || "overview"}?db=shop`);
      const text = await page.locator("body").innerText();
      // A missing text would appear as its name; one with missing values has braces.
      bare.push(...(text.match(/[a-z]+\.[a-z_.]+/g) ?? []).filter((w) => keys.has(w)).map((w) => `${path}: ${w}`));
      if (/\{(n|feed|age|name|id|time|consumer)\}/.test(text)) bare.push(`${path}: a parameter is missing`);
      const heading = (await page.locator("main h1").innerText()).trim();
      if (heading !== "Saga" && pages.some(([name]) => name === heading)) bare.push(`${path}: the heading is English: ${heading}`);
    }
    expect(bare).toEqual([]);
  });
}
