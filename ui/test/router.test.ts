import { expect, test } from "vitest";
import { link, parse } from "../src/router";

test("an address is a path and parameters", () => {
  const route = parse("#/logs/ab12/worker-7.out?from=3");
  expect(route.path).toEqual(["logs", "ab12", "worker-7.out"]);
  expect(route.params.get("from")).toBe("3");
  expect(parse("").path).toEqual([]);
  expect(parse("#/").path).toEqual([]);
});

test("links are read back as they were made, whatever is in them", () => {
  const odd = ["tasks", 'a/b?c#d "<script>" ü %'];
  const route = parse(link(odd, { q: "name=x&y", state: "", offset: 0 }));
  expect(route.path).toEqual(odd);
  expect(route.params.get("q")).toBe("name=x&y");
  expect(route.params.has("state")).toBe(false);
  expect(route.params.get("offset")).toBe("0");
});

test("a stray percent sign is text", () => {
  expect(parse("#/tasks/100%").path).toEqual(["tasks", "100%"]);
});
