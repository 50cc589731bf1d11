// Accessibility: narrow screens and reduced motion.
import { expect, go, open, settled, test } from "../fixtures.ts";
import { details, pages, scene } from "../scene.ts";

test("a narrow screen needs no scrolling sideways", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, "?db=shop");
  const wide: string[] = [];
  for (const [name, path] of [...pages, ...details, ["Odd message", `messages/${scene.odd[0]!.id}`] as const]) {
    await go(page, `${path || "overview"}?db=shop`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > 390) wide.push(`${name}: ${width} px`);
  }
  expect(wide).toEqual([]);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Audit" }).click();
  await settled(page);
  await expect(page.getByRole("heading", { name: "Audit", level: 1 })).toBeVisible();
});

test("nothing moves for those who want that", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await open(page, "?db=shop");
  for (const path of ["overview", "messages?tail=1&db=shop", "sagas/fulfil-order/DH-slow?db=shop"]) {
    await go(page, path);
    const moving = await page.evaluate(() =>
      document
        .getAnimations()
        .filter((a) => Number(a.effect?.getComputedTiming().duration) > 10)
        .map((a) => `${(a as CSSAnimation).animationName ?? "transition"} on ${(a.effect as KeyframeEffect).target?.className}`),
    );
    expect(moving, path).toEqual([]);
  }
});
