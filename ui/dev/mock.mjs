// A stand-in for the dashboard's server, for work on the page and its tests without an engine:
//
//   node dev/mock.mjs [--port 8270] [--tasks 20000] [--serve dist]
//
// It answers the REST API and the streams with a made-up cluster (mock/), and sends the same headers
// as the real one, so that what its Content-Security-Policy forbids fails here too.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { parseArgs } from "node:util";
import { list } from "./mock/list.mjs";
import { timeline, trace } from "./mock/timeline.mjs";
import { World } from "./mock/world.mjs";

const { values: options } = parseArgs({
  options: {
    port: { type: "string", default: "8270" },
    tasks: { type: "string", default: "20000" },
    serve: { type: "string" },
  },
});

const HEADERS = {
  "Content-Security-Policy":
    "default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const FLAME = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 120"><script>parent.hacked = 1</script>
<rect width="800" height="30" y="80" fill="#e8833a"/><rect width="520" height="30" y="48" fill="#eda55d"/>
<text x="8" y="100">evaluate (train.py:88)</text><text x="8" y="68">criterion (train.py:41)</text></svg>`;

const world = new World({ tasks: Number(options.tasks) });

class NotFound extends Error {}

const routes = [
  [/^cluster$/, () => world.cluster()],
  [/^tasks\/([^/]+)\/why$/, () => ({ text: world.why() })],
  [/^tasks\/([^/]+)\/log$/, (_, id) => taskLog(id)],
  [/^tasks\/([^/]+)$/, (_, id) => world.taskDetail(taskIndex(id))],
  [
    /^actors\/([^/]+)$/,
    (_, id) => world.actors().find((row) => row.actor_id === id) ?? missing("actor", id),
  ],
  [
    /^placement-groups\/([^/]+)$/,
    (_, id) =>
      world.placementGroups().find((row) => row.placement_group_id === id) ?? missing("group", id),
  ],
  [
    /^(tasks|actors|objects|nodes|workers|jobs|placement-groups)$/,
    (params, resource) => list(world, resource, params),
  ],
  [/^summary\/tasks$/, () => world.groups()],
  [/^timeline$/, (params) => timeline(world, rangeOf(params))],
  [/^timeline\.json$/, () => trace(world)],
  [/^logs$/, () => ({ files: world.logs.map(logFile) })],
  [/^logs\/([^/]+)\/([^/]+)$/, (params, node, file) => piece(findLog(node, file), params)],
];
const posts = [
  [
    /^workers\/([^/]+)\/stack$/,
    () => ({
      text: 'Thread 4100 (active): "MainThread"\n    criterion (train.py:41)\n    evaluate (train.py:88)',
    }),
  ],
  [/^workers\/([^/]+)\/profile$/, () => ({ svg: FLAME })],
];

function answer(table, path, params) {
  for (const [pattern, handle] of table) {
    const match = pattern.exec(path);
    if (match) return handle(params, ...match.slice(1).map(decodeURIComponent));
  }
  throw new NotFound("There is no such thing in this API.");
}

function missing(what, id) {
  throw new NotFound(`There is no ${what} ${id} in this session.`);
}

function taskIndex(id) {
  return world.taskIndex(id) ?? missing("task", id);
}

function taskLog(id) {
  taskIndex(id);
  const out = "\x1b[32mINFO\x1b[0m  evaluating 32 samples\n<b>as it was printed</b>\n";
  return { out: { text: out, truncated: false }, err: { text: "", truncated: false } };
}

function findLog(node, file) {
  return world.logs.find((log) => log.node === node && log.file === file) ?? missing("log", file);
}

function logFile(log) {
  return { node_id: log.node, file: log.file, size: Buffer.byteLength(log.text()), pid: log.pid };
}

function piece(log, params) {
  const all = Buffer.from(log.text());
  const asked = Number(params.get("offset") ?? 0);
  const offset = Math.min(all.length, asked < 0 ? Math.max(0, all.length + asked) : asked);
  const next = Math.min(all.length, offset + Number(params.get("most") ?? 65_536));
  const text = all.toString("utf8", offset, next);
  return { part: "0a", offset, next, size: all.length, text, is_after_loss: false };
}

function rangeOf(params) {
  const number = (name) => (params.has(name) ? Number(params.get(name)) : undefined);
  return {
    from: number("from"),
    to: number("to"),
    width: number("width") ?? 1000,
    q: params.get("q"),
  };
}

/** Sends an event now and then every second, if it changed. */
function stream(request, response, events) {
  response.writeHead(200, { ...HEADERS, "Content-Type": "text/event-stream" });
  const last = {};
  const tick = () => {
    for (const [event, make] of Object.entries(events)) {
      const data = make();
      if (data === null) continue;
      const text = JSON.stringify(data);
      if (text !== last[event]) response.write(`event: ${event}\ndata: ${text}\n\n`);
      last[event] = text;
    }
  };
  tick();
  const timer = setInterval(tick, 1000);
  request.on("close", () => clearInterval(timer));
}

function streamLog(request, response, log, offset) {
  let next = offset;
  stream(request, response, {
    text: () => {
      const part = piece(log, new URLSearchParams({ offset: next }));
      next = part.next;
      return part.text ? part : null;
    },
  });
}

function file(response, path) {
  const wanted = join(options.serve ?? "dist", normalize(path === "/" ? "/index.html" : path));
  if (!existsSync(wanted)) {
    response.writeHead(404, HEADERS).end();
    return;
  }
  response.writeHead(200, { ...HEADERS, "Content-Type": TYPES[extname(wanted)] ?? "text/plain" });
  createReadStream(wanted).pipe(response);
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://mock");
  if (!pathname.startsWith("/api/")) return file(response, pathname);
  const path = pathname.slice("/api/".length);
  const send = (status, body) =>
    response
      .writeHead(status, { ...HEADERS, "Content-Type": "application/json" })
      .end(JSON.stringify(body));
  try {
    const log = /^logs\/([^/]+)\/([^/]+)\/stream$/.exec(path);
    if (log) {
      const found = findLog(...log.slice(1).map(decodeURIComponent));
      return streamLog(request, response, found, Number(searchParams.get("offset")));
    }
    if (path === "stream") {
      return stream(request, response, {
        cluster: () => world.cluster(),
        tasks: () => world.groups(),
      });
    }
    send(200, answer(request.method === "POST" ? posts : routes, path, searchParams));
  } catch (failure) {
    send(failure instanceof NotFound ? 404 : 400, { error: failure.message });
  }
});

server.listen(Number(options.port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/ ${world.logs[0].file}`);
});
