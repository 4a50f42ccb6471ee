import { expect, test } from "vitest";
import {
  between,
  clamp,
  covers,
  pan,
  spanOf,
  ticks,
  toMoment,
  toX,
  whole,
  zoom,
} from "../src/timeline/geometry";
import { laneAt, laneOf, layout } from "../src/timeline/lanes";
import { density, firstAt, nextAfter, prepared, spanAt } from "../src/timeline/spans";
import type { Span, TimelineRow } from "../src/rows";

const NOW = 1_794_800_000_000;
const limits = whole(NOW, NOW + 100_000);

test("zooming keeps the moment under the pointer where it is", () => {
  let view = limits;
  for (const factor of [0.5, 0.1, 0.01, 0.3]) {
    const at = toMoment(300, view, 1000);
    view = zoom(view, factor, at, limits);
    expect(toX(at, view, 1000)).toBeCloseTo(300, 1);
  }
});

test("a view never leaves what there is, and never becomes too narrow", () => {
  expect(zoom(limits, 10, NOW, limits)).toEqual(limits);
  const narrow = zoom(limits, 1e-12, NOW + 500, limits);
  expect(spanOf(narrow)).toBeCloseTo(0.02, 3);
  const left = pan({ from: NOW, to: NOW + 10 }, -1e9, limits);
  expect(left.from).toBe(limits.from);
  expect(spanOf(left)).toBeCloseTo(10, 3);
  expect(clamp({ from: NOW + 1e9, to: NOW + 1e9 + 5 }, limits).to).toBeCloseTo(limits.to, 3);
});

test("gliding begins at one view and ends at the other", () => {
  const target = { from: NOW + 100, to: NOW + 200 };
  expect(between(limits, target, 0)).toEqual(limits);
  const end = between(limits, target, 1);
  expect(end.from).toBeCloseTo(target.from, 3);
  expect(end.to).toBeCloseTo(target.to, 3);
  const shifted = between(target, { from: NOW + 300, to: NOW + 400 }, 0.5);
  expect(shifted).toEqual({ from: NOW + 200, to: NOW + 300 });
});

test("finer data are due when the view leaves them or is much finer", () => {
  const have = { from: 0, to: 200 };
  expect(covers(have, 2000, { from: 50, to: 150 }, 1000)).toBe(true);
  expect(covers(have, 2000, { from: -1, to: 99 }, 1000)).toBe(false);
  expect(covers(have, 2000, { from: 90, to: 110 }, 1000)).toBe(false);
});

test("ticks are round and their labels fit", () => {
  const labels = (view: { from: number; to: number }) =>
    ticks(view, 500, NOW).map((tick) => tick.label);
  expect(labels({ from: NOW, to: NOW + 4000 })).toEqual(["0", "1 s", "2 s", "3 s", "4 s"]);
  expect(labels({ from: NOW + 1000, to: NOW + 1002 })[1]).toBe("1,000.5 ms");
  expect(labels({ from: NOW, to: NOW + 3_600_000 })).toContain("30 min");
  for (const span of [0.02, 0.3, 7, 90, 4000, 1e5, 1e7]) {
    const found = ticks({ from: NOW + 3, to: NOW + 3 + span }, 900, NOW);
    expect(found.length).toBeGreaterThan(1);
    expect(found.length).toBeLessThan(11);
    expect(new Set(found.map((tick) => tick.label)).size).toBe(found.length);
  }
});

const row = (node: string, worker: string, spans: Span[] = [], lane = 0): TimelineRow => ({
  node_id: node,
  worker_id: worker,
  pid: 1,
  lane,
  label: worker,
  spans,
});

test("rows of one node are together under its heading", () => {
  const placed = layout([row("a", "1"), row("b", "2"), row("a", "3")], (id) => `node ${id}`);
  expect(placed.lanes.map((lane) => lane.label)).toEqual(["node a", "1", "3", "node b", "2"]);
  for (const lane of placed.lanes) {
    expect(laneAt(placed.lanes, lane.top)).toBe(lane);
    expect(laneAt(placed.lanes, lane.top + lane.height - 1)).toBe(lane);
  }
  expect(laneAt(placed.lanes, placed.height)).toBe(null);
  expect(laneAt(placed.lanes, -1)).toBe(null);
  expect(placed.byWorker.get("3")?.[0]?.label).toBe("3");
});

test("a process that runs several calls has a lane for each, and a task is in the one that has it", () => {
  const span = (start: number, id: string): Span => [start, 10, 0, 1, "FINISHED", id];
  const rows = [
    row("a", "1", [span(0, "first"), span(20, "third")]),
    row("a", "1", [span(5, "second")], 1),
  ];
  const placed = layout(rows, (id) => id);
  expect(placed.byWorker.get("1")).toHaveLength(2);
  const data = prepared({ from: 0, to: 30, first: 0, last: 30, names: ["f"], rows }, 100);
  const task = (id: string, start: number) => ({
    task_id: id,
    worker_id: "1",
    start_time_ms: start,
  });
  const at = (id: string, start: number) => laneOf(placed, task(id, start), [null, data]);
  expect(at("first", 0)).toBe(placed.lanes[1]);
  expect(at("second", 5)).toBe(placed.lanes[2]);
  expect(at("third", 20)).toBe(placed.lanes[1]);
  expect(at("nowhere", 20)).toBe(placed.lanes[1]);
});

test("what is under the pointer is what was drawn last there", () => {
  const span = (start: number, took: number, id: string): Span => [
    start,
    took,
    0,
    1,
    "FINISHED",
    id,
  ];
  const data = prepared(
    {
      from: 0,
      to: 100,
      first: 0,
      last: 100,
      names: ["f"],
      rows: [row("a", "w", [span(0, 50, "outer"), span(10, 5, "inner"), span(60, 1, "late")])],
    },
    100,
  );
  const lane = [...data.rows.values()][0]!;
  const at = (moment: number) => spanAt(lane, moment, 1)?.[5] ?? null;
  expect(at(5)).toBe("outer");
  expect(at(12)).toBe("inner");
  expect(at(40)).toBe("outer");
  expect(at(55)).toBe(null);
  expect(at(61.5)).toBe("late");
  expect(firstAt(lane, 51)).toBe(2);
  expect(density(data, 0, 100, 10)[0]).toBeCloseTo(10 / 15);
  expect(density(data, 0, 100, 10)[9]).toBe(0);
});

test("the next match is the nearest after the last one, in the finest data there are", () => {
  const span = (start: number, took: number, task: string | null): Span => [
    start,
    took,
    0,
    task ? 1 : 9,
    "FINISHED",
    task,
  ];
  const row = (spans: Span[], pid: number): TimelineRow =>
    ({ node_id: "n", worker_id: null, pid, label: `worker ${pid}`, spans }) as TimelineRow;
  const data = (from: number, to: number, rows: TimelineRow[]) =>
    prepared({ from, to, first: 0, last: 100, names: ["f"], rows }, 100);
  const all = data(0, 100, [
    row([span(10, 5, null), span(80, 1, "d")], 1),
    row([span(40, 1, "c")], 2),
  ]);
  const near = data(5, 20, [row([span(10, 1, "a"), span(12, 1, "b")], 1)]);
  const next = (moment: number, backwards = false) =>
    nextAfter([near, all], moment, backwards)?.[5] ?? null;
  expect(next(-Infinity)).toBe("a");
  expect(["a", "b", "c", "d"].map((_, i) => next([0, 10, 12, 40][i]!))).toEqual([
    "a",
    "b",
    "c",
    "d",
  ]);
  expect(nextAfter([near, all], 80, false)).toBe(null);
  expect(next(Infinity, true)).toBe("d");
  expect(next(40, true)).toBe("b");
  expect(nextAfter([all], 0, false)![5]).toBe(null);
});
