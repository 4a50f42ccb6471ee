// Debian's chromium, driven by playwright-core of ui/, and pages that remember what went wrong in them.
import { createRequire } from "node:module";

const fromUi = createRequire(new URL("../../ui/package.json", import.meta.url));
const { chromium } = fromUi("playwright-core");

const FLAGS = [
  "--no-sandbox", // Its own needs more than root in a container has.
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: FLAGS,
  });
}

/**
 * Opens a page of a dashboard. `troubles` collects what a console would show in red: errors, scripts
 * and styles that the Content-Security-Policy refused, requests that failed.
 */
export async function open(
  browser,
  url,
  { width = 1280, height = 800, dark = false, scale = 1 } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: scale,
    colorScheme: dark ? "dark" : "light",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.troubles.push(message.text());
  });
  page.on("dialog", (dialog) => {
    page.troubles.push(`a script from the data ran: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  await page.locator("[data-connection=open]").waitFor({ state: "attached" });
  return page;
}

/** Another page of the dashboard, as by clicking there. */
export async function visit(page, hash) {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
}
