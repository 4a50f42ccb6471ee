// Takes docs/screenshots/perfetto.png: the trace of traced.py in Perfetto, a task selected.
//
//   node tests/browser/trace_screenshot.mjs
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { python } from "./subjects.mjs";
import { loadInPerfetto, openViewer, query, serve } from "./viewers.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const home = mkdtempSync(`${tmpdir()}/`);
const file = `${home}/trace.json`;
spawnSync(python, [here("traced.py"), file], { stdio: "inherit" });
const viewers = await serve();
const browser = await launch();
const page = await openViewer(browser, viewers.perfetto, { width: 1280, height: 740 });
await loadInPerfetto(page, file);
const [shown] = await query(
  page,
  `select id, ts + dur as until, (select min(ts) from slice where name = 'load') as since
   from slice where name glob 'merge*'`,
);
await page.evaluate(({ id, since, until }) => {
  const { app } = window;
  app.commands.runCommand("dev.perfetto.ExpandAllGroups");
  app.sidebar.toggleVisibility();
  app.trace.selection.selectSqlEvent("slice", id);
  const margin = (until - since) / 20;
  const at = (ns) => BigInt(Math.round(ns));
  app.trace.timeline.setViewportTime(at(since - margin), at(until + 3 * margin));
}, shown);
await page.waitForTimeout(500);
await page.evaluate(() => window.app.commands.runCommand("dev.perfetto.ToggleDrawer"));
await page.waitForTimeout(1500);
// The rows, without what is around them.
const clip = { x: 0, y: 114, width: 1280, height: 570 };
await page.screenshot({ path: here("../../docs/screenshots/perfetto.png"), clip });
await browser.close();
viewers.stop();
rmSync(home, { recursive: true });
