// Every operator action, and its audit entry with user and reason.
import type { Page } from "@playwright/test";
import { expect, open, settled, test } from "../fixtures.ts";
import { control, scene } from "../scene.ts";
import { like, t } from "../texts.ts";

interface Done {
  count: number;
  command?: string;
  job?: { id: number };
}

/** Fills the dialog that is open and presses its button. The command that was shown is what the daemon says it has done. */
async function confirm(page: Page, button: string | RegExp, why: string, on: RegExp): Promise<Done> {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(t("action.reason")).fill(why);
  const typed = dialog.getByLabel(like("action.type"));
  const go = dialog.locator("footer").getByRole("button", { name: button });
  await expect(dialog.locator(".skeleton")).toHaveCount(0);
  if (await typed.isVisible()) await typed.fill((await typed.getAttribute("placeholder"))!);
  await expect(go).toBeEnabled();
  const command = dialog.locator(".command");
  const shown = (await command.count()) === 0 ? "" : (await command.innerText()).replace(/^\$\s*/, "").trim();
  const [answer] = await Promise.all([
    page.waitForResponse((r) => {
      const asked = r.request();
      return asked.method() !== "GET" && on.test(new URL(r.url()).pathname) && asked.postDataJSON()?.dry_run !== true;
    }),
    go.click(),
  ]);
  expect(answer.status(), await answer.text()).toBeLessThan(300);
  await expect(dialog).toHaveCount(0);
  const done = (answer.status() === 204 ? {} : await answer.json()) as Done;
  expect.soft(words(shown), "the command that is shown").toEqual(words(done.command ?? ""));
  return done;
}

/** The words of a command in any order: flags may stand anywhere. "--yes" only answers a question; "1h" is a time as well. */
function words(command: string): string[] {
  const all = command.match(/'(?:[^']|'\\'')*'|\S+/g) ?? [];
  return all.filter((w) => w !== "--yes").map((w) => w.replace(/^(\d+[smhd]|\d{4}-\d\d-\d\dT[\d:.]+Z)$/, "TIME")).sort();
}

/** All that is done here, for the last test: why, what and who. */
const record: [why: string, action: string | RegExp, who?: string][] = [
  ["VNPost has our contract", "Retry"],
  ["waits for the lawyer", "Park"],
  ["test parcel", "Discard"],
  ["points were booked by hand", "Skip"],
  ["hợp đồng đã ký", "Retry", "minh"],
  ["address by phone", "Edit"],
  ["顺丰 is back", /Retry|Replay/],
  ["asked the customers", "Park"],
  ["Retry of the key", "Retry"],
  ["Skip of the key", "Skip"],
  ["Park of the key", "Park"],
  ["carrier maintenance", "Pause feed"],
  ["maintenance over", "Resume feed"],
  ["partner lost an hour", "Rewind feed"],
  ["new search", "Add feed"],
  ["not yet", "Remove feed"],
  ["warehouse restored from yesterday", "Replay"],
  ["Retry by hand", "Retry saga"],
  ["Skip by hand", "Skip in saga"],
  ["Compensate by hand", "Compensate saga"],
  ["month's end", /reconciler|reconcile/i],
];

for (const [act, id, why] of [
  ["Retry", "retry", "VNPost has our contract"],
  ["Park", "park", "waits for the lawyer"],
  ["Discard", "discard", "test parcel"],
  ["Skip", "skip", "points were booked by hand"],
] as const) {
  test(`${act} one dead letter`, async ({ page }) => {
    await open(page, `messages/${scene.ids[id]}?db=shop`);
    await page.getByRole("button", { name: act, exact: true }).click();
    const done = await confirm(page, act, why, /dead\/act$/);
    expect(done.count).toBe(1);
  });
}

test("an operator's name is recorded", async ({ page, context }) => {
  await context.clearCookies();
  const answer = await page.request.post(`${scene.console}auth/session`, { data: { token: scene.tokens.minh } });
  expect(answer.status()).toBe(204);
  await control("heal/VNPost");
  await open(page, `messages/${scene.ids.retry2}?db=shop`);
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await confirm(page, "Retry", "hợp đồng đã ký", /dead\/act$/);
  await expect(page.locator("main").getByText("Published").first()).toBeVisible();
});

test("edit a dead letter, and it arrives", async ({ page }) => {
  await open(page, `messages/${scene.ids.edit}?db=shop`);
  await page.getByRole("button", { name: t("action.edit") }).click();
  const dialog = page.getByRole("dialog");
  const payload = dialog.getByLabel("Payload");
  await payload.fill((await payload.inputValue()).replace(/"address": ?""/, '"address": "5 Lê Lợi, Huế"'));
  await expect(dialog.locator("pre")).toContainText('+   "address": "5 Lê Lợi, Huế"');
  await confirm(page, t("dead.edit.send"), "address by phone", /dead\/partners\//);
  await expect(page.locator(".legs li").filter({ hasText: "partners" }).getByText("Published")).toBeVisible();
  expect(await control(`received/${scene.ids.edit}`)).toContain('"address": "5 Lê Lợi, Huế"');
});

test("retry a group of errors, after a dry run", async ({ page }) => {
  await open(page, "dead?db=shop");
  await page.getByRole("button", { name: /404 Not Found/ }).click();
  await expect(page).toHaveURL(/error=/);
  await expect(page.locator("tbody tr")).toHaveCount(24);
  await page.getByRole("button", { name: t("dead.act.all") }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByText(t("action.would", { n: 24 }))).toBeVisible();
  await expect(dialog.locator(".plan")).toContainText("shipment.booked");
  await control("heal/SF");
  const done = await confirm(page, /^Retry/, "顺丰 is back", /dead\/act$/);
  expect(done.count).toBe(24);
  await expect(page.getByText(t("dead.job.progress", { done: 24, total: 24 })).or(page.getByText(t("dead.nomatch")))).toBeVisible();
  await expect(page.getByText(t("dead.nomatch"))).toBeVisible();
});

test("selected dead letters", async ({ page }) => {
  await open(page, "dead?db=shop&feed=partners&type=shipment.label");
  const before = await page.locator("tbody tr").count();
  await page.locator("tbody").getByRole("checkbox").nth(1).check();
  await page.locator("tbody").getByRole("checkbox").nth(2).check();
  await page.getByRole("button", { name: t("dead.act.some", { n: 2 }) }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Park", { exact: true }).click();
  await dialog.getByLabel(t("action.reason")).fill("asked the customers");
  await dialog.locator("footer").getByRole("button", { name: /^Park/ }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.locator("tbody tr").filter({ hasText: "Parked" })).toHaveCount(2);
  expect(await page.locator("tbody tr").count()).toBe(before);
});

for (const act of ["Retry", "Skip", "Park"] as const) {
  test(`${act} a blocked key`, async ({ page }) => {
    const key = scene.keys[act.toLowerCase()]!;
    await open(page, "keys?db=shop");
    const row = page.locator("tbody tr").filter({ has: page.getByRole("link", { name: key, exact: true }) });
    await row.getByRole("button", { name: act }).click();
    await confirm(page, act, `${act} of the key`, /keys\/act$/);
    if (act !== "Retry") await expect(row).toHaveCount(0);
  });
}

test("pause, resume and rewind a feed", async ({ page }) => {
  await open(page, "feeds/partners?db=shop");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await confirm(page, "Pause", "carrier maintenance", /partners\/pause$/);
  await expect(page.locator("main").getByText("Paused").first()).toBeVisible();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await confirm(page, "Resume", "maintenance over", /partners\/resume$/);
  await page.getByRole("button", { name: "Rewind", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: t("feeds.rewind.time") }).fill("1m");
  await expect(dialog.getByText(like("action.would"))).toBeVisible();
  await confirm(page, /^Rewind/, "partner lost an hour", /partners\/rewind$/);
});

test("add and remove a feed", async ({ page }) => {
  await open(page, "feeds?db=shop");
  await page.getByRole("button", { name: /^Add/ }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("search-index");
  await confirm(page, /^Add/, "new search", /feeds$/);
  await page.locator("main").getByRole("link", { name: "search-index" }).click();
  await settled(page);
  await page.getByRole("button", { name: /^Remove/ }).click();
  await confirm(page, /^Remove/, "not yet", /feeds\/search-index$/);
  await settled(page);
  await expect(page.locator("main").getByRole("link", { name: "search-index" })).toHaveCount(0);
});

test("replay delivered messages, and watch it", async ({ page }) => {
  await open(page, "replays?db=shop");
  await page.getByRole("button", { name: t("replays.start") }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Feed").selectOption("default");
  await dialog.getByLabel("Type", { exact: true }).fill("order.settled");
  await expect(dialog.getByText(t("action.would", { n: 1 }))).toBeVisible();
  const done = await confirm(page, new RegExp(`^${t("replays.start")}`), "warehouse restored from yesterday", /replays$/);
  await expect(page).toHaveURL(new RegExp(`replays/${done.job!.id}`));
  await expect(page.locator("main").getByText("Done").first()).toBeVisible();
  await expect(page.getByRole("progressbar").first()).toHaveAttribute("value", "1");
});

test("retry, skip and compensate sagas", async ({ page }) => {
  await control("heal/saga-DH-stuck-retry");
  for (const [id, act] of [
    ["DH-stuck-retry", "Retry"],
    ["DH-stuck-skip", "Skip"],
    ["DH-compensate", "Compensate"],
  ] as const) {
    await open(page, `sagas/fulfil-order/${id}?db=shop`);
    await page.getByRole("button", { name: act, exact: true }).first().click();
    await confirm(page, act, `${act} by hand`, /act$/);
    await expect(page.locator("main").getByText("Compensated", { exact: true }).first()).toBeVisible();
  }
});

test("run a reconciler", async ({ page }) => {
  await open(page, "reconcilers?db=shop");
  await control("orders");
  await page.getByRole("button", { name: "Run now" }).click();
  await confirm(page, "Run now", "month's end", /unbilled-orders\/run$/);
  await expect(page.locator("tbody tr").filter({ hasText: "unbilled-orders" })).toContainText(/8 → 4/);
});

test("all of it is in the record, with who and why", async ({ page }) => {
  await open(page, "audit?db=shop");
  for (const [why, action, who] of record) {
    const row = page.locator("tbody tr").filter({ hasText: why }).first();
    await expect.soft(row, why).toContainText(who ?? "wei");
    await expect.soft(row, why).toContainText(action);
  }
});
