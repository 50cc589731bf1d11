// Live updates work, also behind a proxy, and survive a restart of the daemon.
import { expect, open, settled, signIn, test } from "../fixtures.ts";
import { control, pages, scene } from "../scene.ts";

test("figures move and the tail shows what is enqueued now", async ({ page }) => {
  await open(page, "?db=shop");
  await expect(page.getByRole("status").filter({ hasText: "Live" })).toBeVisible();
  const chart = page.locator("main canvas").first();
  await expect(chart).toBeVisible();
  const picture = () => chart.evaluate((c) => (c as HTMLCanvasElement).toDataURL());
  const before = await picture();
  await expect.poll(picture, { timeout: 15_000 }).not.toBe(before);

  await open(page, "messages?tail=1&db=shop");
  await expect(page.getByText("Live", { exact: true }).last()).toBeVisible();
  await control("send/DH-tail");
  const row = page.getByRole("row").filter({ hasText: "order/DH-tail" });
  await expect(row).toBeVisible();
  await expect(row.getByText("published")).toBeVisible(); // the row shows the outcome
  await open(page, "messages/tail?db=shop"); // the tail may begin after that row, where many others were enqueued
  await expect(page.getByText("Live", { exact: true }).last()).toBeVisible();
  const id = await control("send/DH-again");
  await page.getByRole("row").filter({ hasText: "order/DH-again" }).first().click();
  await expect(page).toHaveURL(new RegExp(`messages/${id}`));
});

test("updates can be stopped", async ({ page }) => {
  await open(page, "?db=shop");
  await page.keyboard.press(".");
  await expect(page.getByRole("status").filter({ hasText: "Paused" })).toBeVisible();
  await page.getByRole("button", { name: "Resume updates" }).click();
  await expect(page.getByRole("status").filter({ hasText: "Live" })).toBeVisible();
});

test.describe.serial("behind a proxy with a prefix", () => {
  test("every page, and live figures", async ({ page, watch }) => {
    await signIn(page, "wei", scene.proxy);
    const below = new URL(scene.proxy).pathname;
    const outside: string[] = [];
    page.on("request", (r) => {
      if (r.url().startsWith(new URL(scene.proxy).origin) && !new URL(r.url()).pathname.startsWith(below)) outside.push(r.url());
    });
    await open(page, "?db=shop", scene.proxy);
    await expect(page.getByRole("status").filter({ hasText: "Live" })).toBeVisible();
    const rail = page.getByRole("navigation", { name: "Main" }).first();
    for (const [name, path] of pages) {
      await rail.getByRole("link", { name }).first().click();
      await settled(page);
      expect(new URL(page.url()).pathname).toBe(below + path);
    }
    await page.reload();
    await settled(page);
    await expect(page.getByRole("heading", { name: "Audit", level: 1 })).toBeVisible();
    await open(page, "messages?tail=1&db=shop", scene.proxy);
    await expect(page.getByText("Live", { exact: true }).last()).toBeVisible();
    await control("send/DH-proxy");
    await expect(page.getByRole("row").filter({ hasText: "order/DH-proxy" })).toBeVisible();
    expect(outside).toEqual([]);
    expect(watch.wrong).toEqual([]);
  });

  test("the daemon is killed and started again, and the page goes on", async ({ page, watch }) => {
    watch.allow(/502|Failed to load|ERR_|reconnect/i);
    await signIn(page, "wei", scene.proxy);
    await open(page, "?db=shop", scene.proxy);
    const state = page.getByRole("status").filter({ hasText: /Live|Reconnecting|Polling/ });
    await expect(state).toHaveText("Live");
    await page.evaluate(() => {
      (window as { __same?: boolean }).__same = true;
    });
    await control("kill");
    await expect(state).toHaveText("Reconnecting");
    await control("start");
    await expect(state).toHaveText("Live", { timeout: 25_000 });
    await expect(page.locator("main").getByText("partners").first()).toBeVisible();
    const chart = page.locator("main canvas").first();
    const picture = () => chart.evaluate((c) => (c as HTMLCanvasElement).toDataURL());
    const before = await picture();
    await expect.poll(picture, { timeout: 15_000 }).not.toBe(before);
    expect(await page.evaluate(() => (window as { __same?: boolean }).__same), "without a reload").toBe(true);
  });
});
