import { expect, test } from "vitest";
import { ColourBook } from "../src/colour";
import { phases } from "../src/phases";
import { progressOf } from "../src/progress";
import { condition, listPath, parseQuery } from "../src/query";
import { KEPT_SECONDS, keep, rates, type Sample } from "../src/samples";
import type { TaskState } from "../src/row-types";
import type { TaskDetail } from "../src/rows";

test("what is typed is conditions and text", () => {
  expect(parseQuery("name=f State!=FINISHED  tile x")).toEqual({
    filters: ["name=f", "state!=FINISHED"],
    text: "tile x",
  });
  expect(parseQuery('name="my task" y')).toEqual({ filters: ["name=my task"], text: "y" });
  expect(parseQuery("a= =b ==")).toEqual({ filters: [], text: "a= =b ==" });
  expect(parseQuery(condition("name", "my task")).filters).toEqual(["name=my task"]);
});

test("the path of a list has only what was chosen", () => {
  const query = { filters: ["name=a&b", "state=FAILED"], text: "" };
  expect(listPath("tasks", query, { limit: 100, offset: 0 })).toBe(
    "tasks?filter=name%3Da%26b&filter=state%3DFAILED&limit=100",
  );
});

test("states are grouped into stages", () => {
  const states = {
    PENDING_ARGS_AVAIL: 1,
    SUBMITTED_TO_WORKER: 2,
    RUNNING: 3,
    FINISHED: 4,
    FAILED: 5,
    CANCELLED: 7,
    UNKNOWN: 6,
  };
  expect(progressOf(states)).toEqual({
    pending: 3,
    running: 3,
    done: 4,
    failed: 5,
    cancelled: 7,
    unknown: 6,
    total: 28,
  });
});

test("where a task's time went, as finely as it is known", () => {
  const task = {
    state: "FINISHED",
    creation_time_ms: 100,
    start_time_ms: 110,
    fetch_ms: 1,
    execute_ms: 5,
    store_ms: 0,
  } as TaskDetail;
  const named = (detail: TaskDetail) => phases(detail).map(({ name, ms }) => [name, ms]);
  const ran = [
    ["fetched arguments", 1],
    ["executed", 5],
  ];
  expect(named(task)).toEqual([["waited", 10], ...ran]);
  const events: TaskState[] = [
    "PENDING_ARGS_AVAIL",
    "PENDING_NODE_ASSIGNMENT",
    "SUBMITTED_TO_WORKER",
    "RUNNING",
  ];
  const times = [100, 100, 107, 110];
  const detail = { ...task, events: events.map((state, i) => ({ state, created_ms: times[i]! })) };
  expect(named(detail)).toEqual([["waited for a worker", 7], ["waited at the worker", 3], ...ran]);
  // What came before the last attempt is not its time.
  const again = { ...detail, attempt_number: 2, creation_time_ms: 1 };
  expect(named({ ...again, events: detail.events.slice(1) })).toEqual(named(detail));
  expect(named({ ...again, events: detail.events.slice(2) })).toEqual(ran);
});

test("a process that ended has executed until then", () => {
  const task = { state: "FAILED", duration_ms: 5, creation_time_ms: 100, start_time_ms: 103 };
  const parts = phases({ ...task, execute_ms: null } as TaskDetail);
  expect(parts.map(({ name, ms }) => [name, ms])).toEqual([
    ["waited", 3],
    ["executed", 5],
  ]);
});

const sample = (time: number, ended: number): Sample => ({
  time,
  ended,
  running: 0,
  pending: 0,
  failed: 0,
  cpu: null,
  memory: null,
  store: null,
});

test("a rate is taken over some seconds and never negative", () => {
  const samples = [0, 10, 20, 40, 40].map((ended, i) => sample(i, ended));
  expect(rates(samples)).toEqual([null, 10, 10, 40 / 3, 10]);
  expect(rates([sample(0, 100), sample(1, 0)])).toEqual([null, 0]);
});

test("old samples are forgotten", () => {
  let samples: Sample[] = [];
  for (let i = 0; i < KEPT_SECONDS * 2; i++) samples = keep(samples, sample(i, i));
  expect(samples.length).toBe(KEPT_SECONDS + 1);
});

test("a name keeps its colour, and names together differ", () => {
  const names = Array.from({ length: 26 }, (_, i) => `task_${i}`);
  const book = new ColourBook();
  const colours = names.map((name) => book.colour(name, "light"));
  expect(new Set(colours).size).toBe(26);
  expect(names.map((name) => book.colour(name, "light"))).toEqual(colours);
  expect(new ColourBook().colour("task_0", "dark")).toBe(new ColourBook().colour("task_0", "dark"));
  expect(book.colour("one too many", "dark")).toMatch(/^hsl/);
});
