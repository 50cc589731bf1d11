// An application from the form to the confirmation, as an applicant sees it.
import { barriers, expect, fill, overflows, picture, reached, send, test } from "../applicant.ts";
import { scene } from "../scene.ts";

const looks = [
  { name: "light", colorScheme: "light", viewport: { width: 800, height: 720 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 800, height: 720 } },
  { name: "narrow", colorScheme: "light", viewport: { width: 390, height: 844 } },
] as const;

for (const { name, ...use } of looks) {
  test.describe(name, () => {
    test.use(use);
    test("apply, pay, and see it completed", async ({ page }) => {
      const look = async (what: string) => {
        if (name !== "narrow") expect(await barriers(page), what).toEqual([]);
        expect(await overflows(page), `${what} is wider than the screen`).toBe(false);
        await picture(page, `${what}-${name}`);
      };
      await fill(page, "computing", 2);
      await look("form");
      await send(page);
      await reached(page, 75);
      await look("status");
      await page.getByRole("link", { name: "Pay" }).click();
      await expect(page.locator("#amount")).toHaveText("40.00 EUR");
      await look("pay");
      await page.getByRole("button", { name: "Pay" }).click();
      await expect(page.locator("#outcome")).toContainText("Paid");
      await page.getByRole("link", { name: "Back to the application" }).click();
      await reached(page, 100);
      await expect(page.locator("#outcome")).toContainText("confirmation");
      await expect(page.locator("#pay")).toBeHidden();
      await look("completed");
    });
  });
}

test("a declined payment ends the application", async ({ page }) => {
  await fill(page, "law");
  await send(page);
  await page.locator("#pay:not([hidden])").click();
  await page.getByRole("button", { name: "Decline" }).click();
  await expect(page.locator("#outcome")).toContainText("declined");
  await page.getByRole("link", { name: "Back to the application" }).click();
  await expect(page.locator("#application")).toHaveAttribute("data-status", "declined");
  await expect(page.locator("#pay")).toBeHidden();
  await picture(page, "declined-light");
});

test("the back button shows the page, and not the JSON that its script reads at the same address", async ({ page }) => {
  await fill(page, "law");
  await send(page);
  await reached(page, 75);
  await page.goto("");
  await page.goBack();
  await reached(page, 75);
});

test("a form with mistakes says all of them, and keeps what was written", async ({ page, wrong }) => {
  await page.goto("");
  await page.getByLabel("E-mail").fill("nobody");
  await page.getByRole("button", { name: "Apply" }).click();
  for (const field of ["name", "email", "programme", "document"]) await expect(page.locator(`#${field}-error`)).not.toBeEmpty();
  await expect(page.getByLabel("E-mail")).toHaveValue("nobody");
  expect(await barriers(page)).toEqual([]);
  await picture(page, "mistakes-light");
  wrong.splice(0); // the browser logs the response 400
});

test("a form whose answer was lost is sent again, and counts once", async ({ page, wrong }) => {
  const ids: string[] = [];
  let lost = 0;
  await page.route("**/applications", async (route) => {
    const answer = await route.fetch();
    ids.push((await answer.json()).applicationId);
    await (lost++ < 2 ? route.abort("connectionreset") : route.fulfill({ response: answer }));
  });
  await fill(page, "computing");
  await send(page);
  expect(ids).toHaveLength(3);
  expect(new Set(ids).size, "applications").toBe(1);
  wrong.splice(0); // the browser logs the lost responses
});

test("a page without scripts of others, and a secret address", async ({ page, request }) => {
  const answer = await request.get("");
  expect(answer.headers()["content-security-policy"]).toContain("default-src 'none'");
  expect((await request.get("applications/00000000-0000-4000-8000-000000000000/status")).status()).toBe(404);
  await page.goto(scene.pages);
});
