// Users sign in with Keycloak, get the role of their group, and sign out.
import { test as base, expect, type Page } from "@playwright/test";
import { settled, Watch } from "../fixtures.ts";
import { type SignOn, scene as shared } from "../scene.ts";
import { t } from "../texts.ts";

const scene = shared as unknown as SignOn;
const message = `${scene.console}messages/${scene.dead}?db=shop`;

const test = base.extend<{ watch: Watch }>({
  watch: [
    async ({ page }, use) => {
      const origins = [scene.console, scene.issuer].map((a) => new URL(a).origin);
      const watch = new Watch(page, origins);
      await watch.policy();
      watch.allow(/401/); // before the sign-in
      await use(watch);
      expect(watch.wrong, "what must not happen on a page").toEqual([]);
    },
    { auto: true },
  ],
});

test.describe.configure({ mode: "parallel" });

/** Opens a page of the console as somebody who is not known yet, and signs in with Keycloak. */
async function signIn(page: Page, user: string): Promise<void> {
  await page.goto(message);
  await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
  await expect(page.getByLabel(t("signin.token"))).toHaveCount(0);
  await page.getByRole("link", { name: t("signin.oidc") }).click();
  await page.waitForURL(`${scene.issuer}/**`);
  await page.locator("#username").fill(user);
  await page.locator("#password").fill("secret");
  await page.locator("#kc-login").click();
}

/** Signs in, and expects the page that was asked for. */
async function arrive(page: Page, user: string): Promise<void> {
  await signIn(page, user);
  await page.waitForURL(message);
  await settled(page);
  const me = await page.request.get(`${scene.console}api/v1/me`);
  expect(await me.json()).toMatchObject({ name: user, role: user });
}

/** The answers to what an operator, and to what only an admin may do. Neither changes anything. */
async function answers(page: Page): Promise<number[]> {
  const act = async (act: string) => {
    const data = { act, filter: { id: scene.dead }, limit: 0, dry_run: true, why: "x" };
    return (await page.request.post(`${scene.console}api/v1/dead/act?db=shop`, { data })).status();
  };
  return [await act("retry"), await act("discard")];
}

const button = (page: Page, name: string) => page.locator("main").getByRole("button", { name, exact: true });

test("a viewer sees no payload and no action", async ({ page }) => {
  await arrive(page, "viewer");
  await expect(page.getByText(t("payload.hidden"))).toBeVisible();
  await expect(page.locator("main")).not.toContainText("Trần Quốc Đạt");
  await expect(button(page, "Retry")).toHaveCount(0);
  await expect(button(page, "Discard")).toHaveCount(0);
  expect(await answers(page)).toEqual([403, 403]);
});

test("an operator may retry but not discard", async ({ page }) => {
  await arrive(page, "operator");
  await expect(page.locator("main")).toContainText("Trần Quốc Đạt");
  await expect(button(page, "Retry")).toBeVisible();
  await expect(button(page, "Discard")).toHaveCount(0);
  expect(await answers(page)).toEqual([200, 403]);
});

test("an admin may discard", async ({ page }) => {
  await arrive(page, "admin");
  await expect(button(page, "Retry")).toBeVisible();
  await expect(button(page, "Discard")).toBeVisible();
  expect(await answers(page)).toEqual([200, 200]);
});

test("somebody in none of the groups is told so", async ({ page, watch }) => {
  watch.allow(/403/);
  await signIn(page, "nobody");
  await expect(page.getByRole("heading", { name: "You have no access here" })).toBeVisible();
  await expect(page.locator("body")).toContainText("signed in as nobody");
  expect((await page.request.get(`${scene.console}api/v1/me`)).status()).toBe(401);
});

test("signing out ends the session, also for a copy of its cookie", async ({ page, context }) => {
  await arrive(page, "admin");
  const copy = await context.cookies(scene.console);
  expect(copy.map((c) => c.name)).toEqual(["postrider"]);
  await page.getByRole("button", { name: t("head.settings") }).click();
  await page.getByRole("button", { name: t("head.logout") }).click();
  await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
  expect(await context.cookies(scene.console)).toEqual([]);

  await page.goto(message);
  await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
  await context.addCookies(copy);
  expect((await page.request.get(`${scene.console}api/v1/me`)).status()).toBe(401);
  await page.reload();
  await expect(page.getByRole("heading", { name: t("signin.title") })).toBeVisible();
});
