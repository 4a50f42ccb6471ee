// Every page in a real browser, of the mock and of a real session: it loads without a complaint in
// the console, news arrive, a failure is found, narrow and dark and by keyboard.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { launch, open, visit } from "./browser.mjs";
import { engineMissing, mock, session } from "./subjects.mjs";

const PAGES = {
  "#/": "Cluster",
  "#/timeline": "Timeline",
  "#/tasks": "Tasks",
  "#/actors": "Actors",
  "#/objects": "Objects",
  "#/groups": "Placement groups",
  "#/jobs": "Jobs",
  "#/workers": "Workers",
  "#/logs": "Logs",
};
/** What shows that a page has more than its frame. */
const FILLED = {
  "#/": ".tile .figure",
  "#/timeline": ".timeline-chart canvas",
  "#/logs": "tbody tr",
};

/** A log is in files of a few lines each, most of which are kept. */
const SHORT_LOGS = { RAY_ROTATION_MAX_BYTES: "200", RAY_ROTATION_BACKUP_COUNT: "20" };

for (const [name, start, skip] of [
  ["mock", mock, false],
  ["session", () => session({ env: SHORT_LOGS }), engineMissing()],
]) {
  describe(`the pages of a ${name}`, { skip, timeout: 240_000 }, () => {
    let subject, browser;
    before(async () => {
      subject = await start();
      browser = await launch();
    });
    after(async () => {
      await browser?.close();
      await subject?.stop();
    });

    /** A fresh page; whatever it does, the console stays quiet. */
    const looking = (hash, options, look) => async () => {
      const page = await open(browser, subject.url, options);
      if (hash !== "#/") await visit(page, hash);
      try {
        await look(page);
        assert.deepEqual(page.troubles, []);
      } finally {
        await page.context().close();
      }
    };

    for (const [hash, title] of Object.entries(PAGES)) {
      test(
        `${title} loads`,
        looking(hash, {}, async (page) => {
          await page.getByRole("heading", { level: 1, name: title }).waitFor();
          await page
            .locator(FILLED[hash] ?? "tbody tr")
            .first()
            .waitFor();
          assert.equal(await page.title(), `${title} · Oxiray`);
        }),
      );

      test(
        `${title} fits on a narrow screen`,
        looking(hash, { width: 360, height: 740 }, async (page) => {
          await page
            .locator(FILLED[hash] ?? "tbody tr")
            .first()
            .waitFor();
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= 360, `the page is ${wide} pixels wide`);
        }),
      );
    }

    test(
      "news arrive by themselves",
      looking("#/", {}, async (page) => {
        const figure = page.getByRole("region", { name: "Tasks" }).locator(".figure");
        const first = await figure.textContent();
        await page.waitForFunction(
          (old) => document.querySelector(".tile .figure")?.textContent !== old,
          first,
        );
        await visit(page, "#/tasks");
        const found = page.locator(".found");
        await page.locator("tbody tr").first().waitFor();
        const listed = await found.textContent();
        await page.waitForFunction(
          (old) => document.querySelector(".found")?.textContent !== old,
          listed,
        );
      }),
    );

    test(
      "a failed task's traceback is found in three clicks",
      looking("#/", {}, async (page) => {
        await page
          .getByRole("navigation", { name: "Pages" })
          .getByRole("link", { name: "Tasks" })
          .click();
        await page.getByRole("button", { name: /^Failed/ }).click();
        await page.locator("tbody tr", { hasText: "Failed" }).first().getByRole("link").click();
        const traceback = page.getByLabel("Traceback", { exact: true });
        await traceback.waitFor();
        assert.match(await traceback.textContent(), /ValueError: expected 10 classes, got 9/);
      }),
    );

    test(
      "and also in one, from the start page",
      looking("#/", {}, async (page) => {
        await page
          .getByRole("region", { name: "Failed last" })
          .getByRole("link", { name: "evaluate" })
          .first()
          .click();
        await page.getByLabel("Traceback", { exact: true }).waitFor();
      }),
    );

    test(
      "a task's page has its time, its relatives and its output",
      looking("#/tasks?q=name%3Devaluate&state=failed", {}, async (page) => {
        await page.locator("tbody tr").first().getByRole("link").click();
        for (const title of ["Where the time went", "Facts", "Dependencies", "What it printed"]) {
          await page.getByRole("region", { name: title }).waitFor();
        }
      }),
    );

    test(
      "a placement group says where its bundles are, or why it waits",
      looking("#/groups", {}, async (page) => {
        await page.getByRole("button", { name: /^Pending/ }).click();
        const waiting = page.locator("tbody tr", { hasText: "far too large" });
        await waiting.getByRole("link").click();
        const why = page.getByRole("region", { name: "Why it waits" });
        assert.match(await why.textContent(), /fits nowhere/);
        await visit(page, "#/groups?state=created");
        await page.locator("tbody tr", { hasText: "trainers" }).getByRole("link").click();
        const bundles = page.getByRole("region", { name: "Bundles" }).locator("tbody tr");
        await bundles.first().waitFor();
        assert.equal(await bundles.count(), 3);
        assert.ok(!(await bundles.first().textContent()).includes("nowhere"));
      }),
    );

    test(
      "attempts of a task are in order, each with its error",
      { skip: name === "mock" && "it tries nothing again" },
      looking("#/tasks?q=name%3Dretried", {}, async (page) => {
        await page.locator("tbody tr").first().getByRole("link").click();
        const attempts = page.locator(".attempts li");
        await attempts.first().waitFor();
        const texts = await attempts.allTextContents();
        assert.match(texts[0], /Failed.*ValueError: try 0/);
        assert.match(texts[1], /Failed.*ValueError: try 1/);
        assert.match(texts[2], /Finished/);
        assert.equal(await page.locator(".attempts").getAttribute("start"), "0");
        const time = page.getByRole("region", { name: "Where the time went" });
        assert.match(await time.textContent(), /in attempt 2/);
        assert.doesNotMatch(await time.textContent(), /waited for arguments/);
      }),
    );

    test(
      "names are text, whatever is in them",
      looking("#/tasks?q=%3Cscript%3E", {}, async (page) => {
        const link = page.locator("tbody tr").first().getByRole("link");
        await link.waitFor();
        assert.equal(await link.textContent(), 'odd "<script>alert(1)</script>"');
        await link.click();
        await page
          .getByRole("heading", { level: 1 })
          .filter({ hasText: "<script>alert(1)" })
          .waitFor();
      }),
    );

    test(
      "filters are in the address, and a wrong one is explained",
      looking("#/tasks", {}, async (page) => {
        const box = page.getByRole("searchbox", { name: "Filter tasks" });
        await box.fill("name=evaluate");
        await page.waitForFunction(() => location.hash.includes("name%3Devaluate"));
        await page.waitForFunction(() =>
          [...document.querySelectorAll("tbody td.wide")].every(
            (cell) => cell.textContent === "evaluate",
          ),
        );
        page.troubles.length = 0;
        await box.fill("nonsense=1");
        const alert = page.getByRole("alert");
        await alert.waitFor();
        assert.match(await alert.textContent(), /nonsense|field|key/i);
        // The browser itself notes that the server said 400.
        page.troubles = page.troubles.filter((trouble) => !trouble.includes("400"));
      }),
    );

    test(
      "what a silent node leaves out is said on every page",
      looking("#/tasks", {}, async (page) => {
        const api = (path) => new URL(`/api/${path}`, page.url()).href;
        const seen = await (await page.request.get(api("cluster"))).json();
        const missing = ["node 2 did not answer in time"];
        const body = `event: cluster\ndata: ${JSON.stringify({ ...seen, missing })}\n\n`;
        await page.route(api("stream"), (route) =>
          route.fulfill({ contentType: "text/event-stream", body }),
        );
        await page.reload();
        await page.getByText("Node 2 did not answer in time.").waitFor();
      }),
    );

    test(
      "a log is followed, coloured and searched",
      looking("#/logs", {}, async (page) => {
        await page.getByRole("link", { name: subject.log, exact: true }).click();
        await page.locator(".log-line").first().waitFor();
        const lines = () => page.locator(".found").textContent();
        const first = await lines();
        await page.waitForFunction(
          (old) => document.querySelector(".found")?.textContent !== old,
          first,
        );
        await page.locator(".log-line .ansi-2").first().waitFor();
        await page.getByRole("searchbox").fill("step");
        await page.locator("mark").first().waitFor();
        assert.match(await page.locator(".finds").textContent(), /\d+ of \d+/);
      }),
    );

    test(
      "a log is followed from file to file",
      { skip: name === "mock" && "its log is in one file" },
      looking("#/logs", {}, async (page) => {
        await page.getByRole("link", { name: subject.log, exact: true }).click();
        const lines = page.locator(".log-line");
        await lines.first().waitFor();
        const steps = async () =>
          (await lines.allTextContents()).map((line) => Number(/step (\d+)/.exec(line)?.[1]));
        const [first] = await steps();
        await lines.filter({ hasText: `step ${first + 10} ` }).waitFor();
        const seen = await steps();
        assert.deepEqual(
          seen,
          seen.map((_, i) => first + i),
        );
      }),
    );

    test(
      "a look inside a process is asked for by hand",
      looking("#/workers", {}, async (page) => {
        await page.getByRole("button", { name: "Stack" }).first().click();
        const dialog = page.getByRole("dialog");
        // py-spy need not be installed, or allowed to look: then that is said.
        await dialog.locator("pre, .failure").first().waitFor();
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        page.troubles = page.troubles.filter(
          (trouble) => !trouble.includes("Failed to load resource"),
        );
      }),
    );

    test(
      "dark follows the system, and the reader may choose",
      looking("#/", { dark: true }, async (page) => {
        const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
        const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(await theme(), "dark");
        const dark = await ground();
        await page.getByRole("radio", { name: "Light" }).click();
        assert.equal(await theme(), "light");
        assert.notEqual(await ground(), dark);
        await page.reload();
        await page.locator("[data-connection]").waitFor();
        assert.equal(await theme(), "light");
      }),
    );

    test(
      "everything is reached by keyboard",
      looking("#/", {}, async (page) => {
        await page.keyboard.press("Tab");
        assert.equal(
          await page.evaluate(() => document.activeElement.textContent),
          "Skip to the page",
        );
        for (let i = 0; i < 4; i++) await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.textContent), "Tasks");
        await page.keyboard.press("Enter");
        await page.getByRole("heading", { level: 1, name: "Tasks" }).waitFor();
        const outline = await page.evaluate(
          () => getComputedStyle(document.activeElement).outlineStyle,
        );
        assert.equal(outline, "solid");
      }),
    );

    test(
      "on a narrow screen the menu opens and closes",
      looking("#/", { width: 360, height: 740 }, async (page) => {
        const pages = page.getByRole("navigation", { name: "Pages" });
        assert.equal(await pages.isVisible(), false);
        await page.getByRole("button", { name: "Open the menu" }).click();
        await pages.getByRole("link", { name: "Actors" }).click();
        await page.getByRole("heading", { level: 1, name: "Actors" }).waitFor();
        assert.equal(await pages.isVisible(), false);
      }),
    );
  });
}

describe("a server that goes away", { timeout: 60_000 }, () => {
  test("is said, with what is known staying on the page", async () => {
    const subject = await mock();
    const browser = await launch();
    try {
      const page = await open(browser, subject.url);
      await page.locator(".tile .figure").first().waitFor();
      await subject.stop();
      const banner = page.getByRole("alert");
      await banner.waitFor();
      assert.match(
        await banner.textContent(),
        /The connection is lost\. The dashboard does not answer/,
      );
      assert.ok(await page.locator(".tile .figure").first().isVisible());
      await page.getByRole("button", { name: /Try/ }).click();
    } finally {
      await browser.close();
    }
  });
});

describe("a flame graph", { timeout: 60_000 }, () => {
  test("is shown as a picture in which no script runs", async () => {
    const subject = await mock();
    const browser = await launch();
    try {
      const page = await open(browser, `${subject.url}#/workers`);
      await page.getByRole("button", { name: "Flame graph" }).first().click();
      const picture = page.locator("img.flame");
      await picture.waitFor();
      await page.waitForFunction(() => document.querySelector("img.flame").naturalWidth > 0);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.deepEqual(page.troubles, []);
    } finally {
      await browser.close();
      await subject.stop();
    }
  });
});
