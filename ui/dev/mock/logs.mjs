// Made-up logs: what workers print, in colours and with junk, and a little more every second.

export function logFiles(world) {
  return world.workers.map((worker, w) => ({
    node: worker.node.id,
    file: `worker-${worker.pid}.out`,
    pid: worker.pid,
    /** The text so far; the first worker prints a line a second. */
    text: () =>
      lines(w, w === 0 ? 3000 + Math.floor((Date.now() - world.started) / 1000) : 60 + w * 5),
  }));
}

const cache = new Map();

function lines(worker, n) {
  const known = cache.get(worker) ?? [];
  while (known.length < n) known.push(line(worker, known.length));
  cache.set(worker, known);
  return known.slice(0, n).join("");
}

function line(worker, i) {
  if (i % 97 === 13)
    return `\x1b[1;31mERROR\x1b[0m tile ${i} is damaged: \x1b[33mretrying\x1b[0m\n`;
  if (i % 50 === 7) return `progress 10%\rprogress 60%\rprogress 100% of epoch ${i}\n`;
  if (i % 211 === 5)
    return `junk: \x00\x07\x1b]0;title\x07 <b>not bold</b> \x1b[38;2;90;140;220mblue\x1b[0m\n`;
  return `\x1b[32mINFO\x1b[0m  worker ${worker} step ${i} loss \x1b[36m${(2 / (1 + i / 40)).toFixed(4)}\x1b[0m\n`;
}
