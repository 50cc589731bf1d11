// A page of a signed-in user that records everything that must not happen.
import { test as base, expect, type Page } from "@playwright/test";
import { scene } from "./scene.ts";

type Who = keyof typeof scene.tokens;

/** Signs somebody in, with a session as the sign-in page gets one. */
export async function signIn(page: Page, who: Who, at = scene.console): Promise<void> {
  const answer = await page.request.post(`${at}auth/session`, { data: { token: scene.tokens[who] } });
  expect(answer.status()).toBe(204);
}

/** What must not happen on any page. */
export class Watch {
  readonly wrong: string[] = [];
  private allowed: RegExp[] = [];

  constructor(
    private readonly page: Page,
    origins: string[],
  ) {
    page.on("console", (m) => {
      if (m.type() === "error" || m.type() === "warning") this.note(`console: ${m.text()} ${m.location().url}`);
    });
    page.on("pageerror", (e) => this.note(`error: ${e.message}`));
    page.on("dialog", (d) => {
      this.note(`dialog: ${d.message()}`);
      void d.dismiss();
    });
    page.on("request", (r) => {
      const url = new URL(r.url());
      if (!origins.includes(url.origin) && url.protocol !== "data:" && url.protocol !== "blob:") this.note(`request to ${r.url()}`);
    });
  }

  /** Notes also what the policy of a page has kept it from. */
  async policy(): Promise<void> {
    await this.page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (e) => {
        console.error(`policy violated: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`);
      });
    });
  }

  /** Leaves out what a test brings about itself. */
  allow(what: RegExp): void {
    this.allowed.push(what);
  }

  private note(text: string): void {
    if (!this.allowed.some((a) => a.test(text))) this.wrong.push(text);
  }
}

export const test = base.extend<{ who: Who; watch: Watch }>({
  who: ["wei", { option: true }],
  watch: [
    async ({ page, who }, use) => {
      const watch = new Watch(page, [new URL(scene.console).origin, new URL(scene.proxy).origin]);
      await watch.policy();
      await signIn(page, who);
      await use(watch);
      expect(watch.wrong, "what must not happen on a page").toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

/** Opens a page of the console and waits until it has what it asked for. */
export async function open(page: Page, path: string, at = scene.console): Promise<void> {
  await page.goto(at + path);
  await settled(page);
}

/** Goes to another page of a console that is open, as a link does. */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(async (path) => {
    history.pushState(null, "", new URL(path, document.baseURI));
    dispatchEvent(new PopStateEvent("popstate"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }, path);
  await settled(page);
}

/** Waits until a page shows its data. */
export async function settled(page: Page): Promise<void> {
  await expect(page.locator("main h1")).toBeVisible();
  await expect(page.locator("main .skeleton")).toHaveCount(0);
}
