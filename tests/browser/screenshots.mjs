// Takes the pictures of docs/screenshots from a real cluster:
//
//   node tests/browser/screenshots.mjs
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { launch, open, visit } from "./browser.mjs";
import { program, session } from "./subjects.mjs";

const folder = fileURLToPath(new URL("../../docs/screenshots/", import.meta.url));
const SIZE = { width: 1280, height: 800 };
/** So long the charts are left to grow. */
const CHART_MS = 45_000;

mkdirSync(folder, { recursive: true });
// Tracebacks show where a program is: somewhere that is nobody's.
const home = mkdtempSync(`${tmpdir()}/`);
const script = `${home}/train.py`;
copyFileSync(program, script);
const subject = await session({ tasks: 2000, nodes: 3, pause: 0.02, script });
const browser = await launch();
const settled = (page) => page.waitForTimeout(1200);

/** One picture: `arrange` brings the page to what it should show. */
async function picture(name, hash, options, arrange = settled) {
  const page = await open(browser, subject.url, { ...SIZE, ...options });
  if (hash !== "#/") await visit(page, hash);
  await settled(page);
  await arrange(page);
  await page.screenshot({ path: `${folder}${name}.png` });
  await page.context().close();
  console.log(`${name}.png`);
}

/** Zooms in, and selects a task that needs others. */
async function selectMerge(page) {
  const area = await page.locator(".timeline-chart canvas").boundingBox();
  await page.mouse.move(area.x + area.width * 0.45, area.y + 90);
  for (let i = 0; i < 22; i++) await page.mouse.wheel(0, -60);
  await settled(page);
  const tooltip = page.locator(".tooltip");
  for (let y = 66; y < 320; y += 24) {
    for (let x = 420; x < area.width - 250; x += 12) {
      await page.mouse.move(area.x + x, area.y + y);
      if ((await tooltip.count()) && /^merge/.test(await tooltip.textContent())) {
        await page.mouse.down();
        await page.mouse.up();
        await page.mouse.move(area.x + 40, area.y + area.height - 10);
        return settled(page);
      }
    }
  }
}

async function openFirst(page) {
  await page.locator("tbody tr").first().getByRole("link").first().click();
  await settled(page);
}

await picture("cluster", "#/", {}, (page) => page.waitForTimeout(CHART_MS));
await picture("cluster-dark", "#/", { dark: true }, (page) => page.waitForTimeout(CHART_MS));
await picture("timeline", "#/timeline", {}, selectMerge);
await picture("timeline-dark", "#/timeline", { dark: true });
await picture("tasks", "#/tasks", {});
await picture("traceback", "#/tasks?state=failed", {}, openFirst);
await picture("objects", "#/objects", {});
await picture("log", "#/logs", {}, async (page) => {
  await page.getByRole("link", { name: subject.log }).click();
  await settled(page);
});
await picture("narrow", "#/tasks", { width: 360, height: 760 });
await browser.close();
await subject.stop();
rmSync(home, { recursive: true });
