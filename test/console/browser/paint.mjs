// Opens a page in a new browser and prints, in milliseconds, when it was first painted and when its figures were there.
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(process.argv[2]);
await page.getByRole("table").first().waitFor();
const times = await page.evaluate(() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  ready: performance.now(),
}));
console.log(JSON.stringify(times));
await browser.close();
