// The trace of a real cluster in Perfetto and in the viewer of chrome://tracing: both take all of it
// without a complaint, name its rows, nest its spans and bind its arrows to tasks.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { engineMissing, python } from "./subjects.mjs";
import {
  loadInChromeTracing,
  loadInPerfetto,
  openViewer,
  query,
  serve,
  viewersMissing,
} from "./viewers.mjs";

const MERGE = 'merge "ünïcode" <b>✓</b> \\';
const ARROWS = {
  [`${MERGE} > Counter.add`]: 3,
  "load > train": 4,
  [`train > ${MERGE}`]: 4,
};

/** Those that last, and moments, which to viewers last no time. */
const slicesOf = (events) => events.filter(({ ph }) => ph === "X" || ph === "i");

const skip = engineMissing() || viewersMissing();
describe("the trace of a cluster", { skip, timeout: 120_000 }, () => {
  const home = mkdtempSync(`${tmpdir()}/`);
  const file = `${home}/trace.json`;
  let events, viewers, browser;
  before(async () => {
    const program = fileURLToPath(new URL("traced.py", import.meta.url));
    const { status, stderr } = spawnSync(python, [program, file], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    events = JSON.parse(readFileSync(file, "utf8"));
    viewers = await serve();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    viewers?.stop();
    rmSync(home, { recursive: true });
  });

  describe("in Perfetto", () => {
    let page;
    before(async () => {
      page = await openViewer(browser, viewers.perfetto);
      await loadInPerfetto(page, file);
    });

    test("is taken without a complaint", async () => {
      const wrong = await query(
        page,
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
      );
      assert.deepEqual(wrong, []);
      assert.deepEqual(page.troubles, []);
      const said = await page.locator("body").innerText();
      assert.doesNotMatch(said, /import error|went wrong/i);
    });

    test("is there to the last slice and nanosecond", async () => {
      const slices = await query(page, "select name, ts, dur from slice");
      const ns = (micros) => Math.round(micros * 1000);
      const written = slicesOf(events).map(({ name, ts, dur = 0 }) => {
        return { name, ts: ns(ts), dur: ns(dur) };
      });
      const order = (a, b) => a.ts - b.ts || a.dur - b.dur || a.name.localeCompare(b.name);
      assert.ok(written.length > 1000);
      assert.deepEqual(slices.sort(order), written.sort(order));
    });

    test("has a row each node and process", async () => {
      const rows = await query(
        page,
        `select distinct process.pid || ' ' || process.name || ', ' || thread.name as name
         from slice join thread_track on thread_track.id = slice.track_id
         join thread using (utid) join process using (upid)`,
      );
      const kinds = new Set(rows.map(({ name }) => name.replace(/\d+(?=, thread|$)/, "PID")));
      for (const kind of ["1 node, driver PID", "1 node, worker PID", "2 node, worker PID"]) {
        assert.ok(kinds.has(kind), [...kinds].join("\n"));
      }
      // Spans of threads that overlap.
      assert.ok([...kinds].some((kind) => / worker PID, thread 3$/.test(kind)));
    });

    test("has arrows between tasks", async () => {
      const arrows = await query(
        page,
        `select a.name || ' > ' || b.name as arrow, count(*) as count from flow
         join slice a on a.id = slice_out join slice b on b.id = slice_in group by 1`,
      );
      const found = Object.fromEntries(arrows.map(({ arrow, count }) => [arrow, count]));
      assert.deepEqual(found, ARROWS);
    });

    test("has spans within spans within tasks", async () => {
      const nested = await query(
        page,
        `select distinct task.name as task, outside.name as outside, inside.name as inside,
           extract_arg(outside.arg_set_id, 'args.extra_data.said') as said
         from slice inside join slice outside on outside.id = inside.parent_id
         join slice task on task.id = outside.parent_id where inside.category = 'profile'`,
      );
      const expected = { task: "load", outside: "read", inside: "parse", said: 'a "quote" ✓' };
      assert.deepEqual(nested, [expected]);
    });

    test("says how tasks ended", async () => {
      const ends = await query(
        page,
        `select name || ' ' || extract_arg(arg_set_id, 'args.state') as ended, count(*) as count
         from slice where name in ('broken', 'never begun', 'third_time', 'dies_once', 'running')
         group by 1`,
      );
      assert.deepEqual(
        ends.map(({ ended, count }) => `${ended} ${count}`),
        [
          "broken FAILED 1",
          "dies_once FAILED 1",
          "dies_once FINISHED 1",
          "never begun FAILED 1",
          "running RUNNING 1",
          "third_time FAILED 2",
          "third_time FINISHED 1",
        ],
      );
    });
  });

  test("is taken by the viewer of chrome://tracing", async () => {
    const page = await openViewer(browser, viewers.chromeTracing);
    const { warnings, threads, arrows } = await loadInChromeTracing(page, file);
    assert.deepEqual(warnings, []);
    assert.deepEqual(page.troubles, []);
    const total = threads.reduce((sum, { slices }) => sum + slices, 0);
    assert.equal(total, slicesOf(events).length);
    for (const { process, name } of threads) {
      assert.match(process, /^node \(pid [12]\)$/);
      assert.match(name, /^(driver|worker|node service) \d+(, thread \d)?$/);
    }
    const found = {};
    for (const [from, to] of arrows) {
      found[`${from} > ${to}`] = (found[`${from} > ${to}`] ?? 0) + 1;
    }
    assert.deepEqual(found, ARROWS);
  });
});
