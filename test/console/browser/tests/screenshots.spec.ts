// Screenshots of every page for docs/console, only with UPDATE_SCREENSHOTS=1. Git keeps those that
// a page of the documentation shows.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, go, open, test } from "../fixtures.ts";
import { small } from "../png.ts";
import { details, pages, scene } from "../scene.ts";
import { like, t } from "../texts.ts";

test.skip(process.env.UPDATE_SCREENSHOTS !== "1", "only with UPDATE_SCREENSHOTS=1");

const folder = join(import.meta.dirname, "../../../../docs/console");
const all = [...pages, ...details].map(([name, path]) => [name.toLowerCase().replaceAll(" ", "-"), path] as const);

/** Does something in somebody's name. */
function poster(page: Page) {
  return async (who: keyof typeof scene.tokens, path: string, data: object) => {
    const answer = await page.request.post(`${scene.console}api/v1/${path}?db=shop`, {
      data,
      headers: { authorization: `Bearer ${scene.tokens[who]}` },
    });
    expect(answer.status(), `${path}: ${await answer.text()}`).toBeLessThan(300);
  };
}

/** Messages of a type, once more. */
function again(type: string, rate: number) {
  return { filter: { feed: "default", type }, dead: false, rate, dry_run: false, force: false };
}

/** What people have done on an ordinary day. */
async function work(page: Page): Promise<void> {
  const post = poster(page);
  const one = (id: string | undefined) => ({ filter: { feed: "partners", id }, limit: 0, dry_run: false });
  await post("minh", "feeds/partners/pause", { why: "GHN bảo trì từ 18:00" });
  await post("minh", "feeds/partners/resume", { why: "GHN đã hoạt động lại" });
  await post("wei", "dead/act", { act: "park", ...one(scene.ids.park), why: "等客户确认地址" });
  await post("wei", "dead/act", { act: "discard", ...one(scene.ids.discard), why: "test parcel" });
  await post("minh", "dead/act", { act: "retry", ...one(scene.ids.retry), why: "VNPost: hợp đồng đã ký" });
  await post("wei", "sagas/fulfil-order/DH-compensate/act", { act: "compensate", why: "customer has cancelled" });
  await post("minh", "replays", { ...again("order.placed", 0), why: "warehouse restored from yesterday" });
}

test("take pictures", async ({ page, context, watch }) => {
  watch.allow(/401/);
  test.setTimeout(400_000);
  mkdirSync(folder, { recursive: true });
  const take = async (name: string) =>
    writeFileSync(join(folder, `${name}.png`), small(await page.screenshot({ animations: "disabled" })));
  await work(page);
  // The charts need some minutes of data.
  await expect
    .poll(
      async () => {
        const series = await (await page.request.get(`${scene.console}api/v1/series?db=shop&minutes=15`)).json();
        return series.published.filter((n: number | null) => n !== null).length;
      },
      { timeout: 150_000, intervals: [2000] },
    )
    .toBeGreaterThan(40);
  await poster(page)("wei", "replays", { ...again("payment.captured", 5), why: "ledger was closed" });
  await open(page, "?db=shop");
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    for (const [name, path] of all) {
      await go(page, `${path || "overview"}?db=shop`);
      if (name === "overview") await expect(page.locator("main canvas").first()).toBeVisible();
      await take(`${name}-${theme}`);
    }
    await go(page, "messages?tail=1&db=shop");
    await expect(page.locator("tbody tr").nth(12)).toBeVisible();
    await take(`tail-${theme}`);
    await go(page, "dead?db=shop");
    await page.getByRole("button", { name: t("dead.act.all") }).click();
    await expect(page.getByRole("dialog").getByText(like("action.would"))).toBeVisible();
    await take(`dead-letters-act-${theme}`);
    await page.keyboard.press("Escape");
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [name, path] of all.filter(([name]) => ["overview", "dead-letters", "message", "saga", "feeds"].includes(name))) {
    await go(page, `${path || "overview"}?db=shop`);
    await take(`${name}-narrow`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await context.clearCookies();
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.goto(scene.console);
    await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
    await take(`sign-in-${theme}`);
  }
});
