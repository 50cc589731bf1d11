// Values from outside are shown as text: nothing in them is executed or hidden.
import { expect, open, test } from "../fixtures.ts";
import { control, scene } from "../scene.ts";
import { like, t } from "../texts.ts";

/** What an injected text would leave behind. */
async function traces(page: import("@playwright/test").Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    if ((window as { __pwned?: number }).__pwned) found.push(`ran ${(window as { __pwned?: number }).__pwned}`);
    for (const e of document.querySelectorAll("main *, dialog *, [title]")) {
      if (/^(script|iframe|object|embed|base|style|img)$/i.test(e.tagName)) found.push(e.outerHTML);
      for (const a of e.attributes) {
        if (/^on/i.test(a.name)) found.push(`${e.tagName} ${a.name}`);
        if (/^(href|src|action)$/i.test(a.name) && /^\s*javascript:/i.test(a.value)) found.push(`${a.name}=${a.value}`);
      }
    }
    return found;
  });
}

/** A text as the console writes it: odd characters by their numbers. */
function marked(text: string): string {
  return text.replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2066-\u2069]/gu, (c) => `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`);
}

test("a message of odd texts is shown as it is", async ({ page }) => {
  for (const { text, id } of scene.odd) {
    await open(page, `messages/${id}?db=shop`);
    const main = page.locator("main");
    await expect(main.getByRole("heading", { level: 1 })).toBeVisible();
    // Type, key, tenant, header and schema: the complete text, verbatim.
    const shown = (await main.innerText()).replaceAll("\n", " ");
    expect(shown.split(marked(text).trim()).length - 1, text).toBeGreaterThanOrEqual(4);
    // In the payload, escaped as JSON.
    expect(await page.locator("main pre").first().innerText()).toContain(marked(JSON.stringify(text).slice(1, -1)));
    expect(await traces(page), text).toEqual([]);
    await expect(page).toHaveTitle(/Postrider/);
  }
});

test("lists, errors, records and the palette show them as well", async ({ page }) => {
  for (const path of ["messages?db=shop&tenant=", "dead?db=shop&consumer=billing", "keys?db=shop&consumer=billing", "?db=shop", "idempotency?db=shop"]) {
    await open(page, path.endsWith("tenant=") ? path + encodeURIComponent(scene.odd[0]!.text) : path);
    expect(await traces(page), path).toEqual([]);
  }
  await open(page, "dead?db=shop&consumer=billing");
  for (const { text } of scene.odd.slice(0, 6)) await expect(page.locator("main table").getByText(text, { exact: true }).first(), text).toBeVisible();
  await expect(page.locator("main table mark").first()).toHaveText(/^U\+/);
  // A dry run shows samples.
  await page.getByRole("button", { name: t("dead.act.all") }).click();
  await expect(page.getByRole("dialog").getByText(like("action.would"))).toBeVisible();
  expect(await traces(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type(scene.odd[0]!.text);
  await expect(page.getByRole("dialog").getByRole("option").first()).toContainText(scene.odd[0]!.text);
  expect(await traces(page)).toEqual([]);
});

test("large numbers stay as they were written", async ({ page }) => {
  await open(page, `messages/${scene.ids.big}?db=shop`);
  for (const value of Object.values(scene.big)) await expect(page.locator("main pre").first()).toContainText(value);
  await page.getByRole("button", { name: "Raw" }).click();
  for (const value of Object.values(scene.big)) await expect(page.locator("main pre").first()).toContainText(value);
});

test("large numbers outlive editing", async ({ page }) => {
  await open(page, `messages/${scene.ids.bigdead}?db=shop`);
  await page.getByRole("button", { name: t("action.edit") }).click();
  const dialog = page.getByRole("dialog");
  const payload = dialog.getByLabel("Payload");
  await payload.fill((await payload.inputValue()).replace(/"address": ?""/, '"address": "Vũng Tàu"'));
  await dialog.getByLabel(t("action.reason")).fill("address from the phone");
  await dialog.getByRole("button", { name: t("dead.edit.send") }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.locator(".legs li").filter({ hasText: "partners" }).getByText(t("status.published"))).toBeVisible();
  const received = await control(`received/${scene.ids.bigdead}`);
  for (const value of Object.values(scene.big)) expect(received).toContain(value);
  // The audit log shows the same numbers before and after.
  await open(page, "audit?db=shop");
  await page.getByRole("row").filter({ hasText: "address from the phone" }).getByRole("button").first().click();
  for (const value of Object.values(scene.big)) await expect(page.getByRole("dialog")).toContainText(value);
});
