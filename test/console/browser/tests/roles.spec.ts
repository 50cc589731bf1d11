// Which role may see and do what.
import { expect, go, open, settled, test } from "../fixtures.ts";
import { pages, scene } from "../scene.ts";
import { t } from "../texts.ts";

const acts = /^(Retry|Skip|Park|Discard|Edit & resend|Send again|Pause|Resume|Rewind|Remove.*|Add.*|Start replay|Compensate|Run now|Act on .*)$/;

test.describe("viewer", () => {
  test.use({ who: "linh" });

  test("sees no payload, no header value and no action", async ({ page, watch }) => {
    await open(page, "?db=shop");
    for (const [, path] of pages) {
      if (path === "audit") continue; // its buttons are named after actions and open audit entries
      await go(page, `${path || "overview"}?db=shop`);
      await expect(page.locator("main").getByRole("button", { name: acts }), path).toHaveCount(0);
    }
    await open(page, `messages/${scene.ids.oversize}?db=shop`);
    await expect(page.getByText(t("payload.hidden"))).toBeVisible();
    await expect(page.locator("main")).not.toContainText("Cần Thơ");
    await expect(page.locator("main").getByRole("button", { name: acts })).toHaveCount(0);
    await open(page, "sagas/fulfil-order/DH-stuck?db=shop");
    await expect(page.getByText(t("payload.hidden"))).toBeVisible();
    await expect(page.locator("main").getByRole("button", { name: acts })).toHaveCount(0);

    watch.allow(/403/);
    for (const [path, data] of [
      ["feeds/default/pause", { why: "x" }],
      ["dead/act", { act: "retry", filter: { id: scene.ids.oversize }, limit: 0, dry_run: false, why: "x" }],
      ["reconcilers/unbilled-orders/run", { why: "x" }],
    ] as const) {
      const answer = await page.request.post(`${scene.console}api/v1/${path}?db=shop`, { data });
      expect(answer.status(), path).toBe(403);
      expect(answer.headers()["content-type"]).toContain("application/problem+json");
    }
  });
});

test.describe("operator", () => {
  test.use({ who: "minh" });

  test("may retry but not discard, rewind or add feeds", async ({ page, watch }) => {
    await open(page, `messages/${scene.ids.oversize}?db=shop`);
    await expect(page.getByRole("button", { name: "Retry" })).toBeVisible();
    await expect(page.getByRole("button", { name: "Discard" })).toHaveCount(0);
    await open(page, "feeds/default?db=shop");
    await expect(page.getByRole("button", { name: "Pause", exact: true })).toBeVisible();
    await expect(page.getByRole("button", { name: /Rewind|Remove/ })).toHaveCount(0);
    watch.allow(/403/);
    const answer = await page.request.post(`${scene.console}api/v1/feeds?db=shop`, { data: { name: "mine", why: "x" } });
    expect(answer.status()).toBe(403);
  });
});

test("signing in with a token, and out", async ({ page, context, watch }) => {
  watch.allow(/401/);
  await context.clearCookies();
  await page.goto(`${scene.console}feeds?db=shop`);
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await page.getByLabel("Access token").fill("not-a-token-that-anybody-has-1");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText(t("signin.bad"))).toBeVisible();
  await page.getByLabel("Access token").fill(scene.tokens.minh);
  await page.getByRole("button", { name: "Sign in" }).click();
  await settled(page);
  await expect(page.getByRole("heading", { name: "Feeds", level: 1 })).toBeVisible();
  const token = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  expect(token).not.toContain(scene.tokens.minh);

  await page.getByRole("button", { name: "Settings" }).click();
  await expect(page.getByText("minh").first()).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  expect((await page.request.get(`${scene.console}api/v1/me`)).status()).toBe(401);
  await page.reload();
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
});
