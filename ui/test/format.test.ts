import { expect, test } from "vitest";
import {
  ago,
  amount,
  bytes,
  count,
  duration,
  plural,
  shortCount,
  shortId,
  words,
} from "../src/format";

test("counts are grouped, and short where there is little room", () => {
  expect(count(1234567)).toBe("1,234,567");
  expect(count(null)).toBe("–");
  expect(shortCount(9999)).toBe("9,999");
  expect(shortCount(12_345)).toBe("12.3 k");
  expect(shortCount(1_234_567)).toBe("1.23 M");
  expect(plural(1, "node")).toBe("1 node");
  expect(plural(0, "process", "processes")).toBe("0 processes");
  expect(amount(0.1 + 0.2)).toBe("0.3");
});

test("bytes are in powers of 1024", () => {
  expect(bytes(0)).toBe("0 B");
  expect(bytes(1023)).toBe("1023 B");
  expect(bytes(1536)).toBe("1.5 KiB");
  expect(bytes(4 * 2 ** 30)).toBe("4 GiB");
  expect(bytes(5000 * 2 ** 40)).toBe("5000 TiB");
  expect(bytes(undefined)).toBe("–");
});

test("durations have the unit that suits them", () => {
  expect(duration(null)).toBe("–");
  expect(duration(0)).toBe("0 s");
  expect(duration(0.0005)).toBe("500 ns");
  expect(duration(0.0423)).toBe("42.3 µs");
  expect(duration(9.999)).toBe("10 ms");
  expect(duration(1234)).toBe("1.23 s");
  expect(duration(61_000)).toBe("1 min 1 s");
  expect(duration(3_600_000)).toBe("1 h");
  expect(duration(90_000_000)).toBe("1 d 1 h");
  expect(duration(-5)).toBe("-5 ms");
});

test("how long ago, in whole seconds", () => {
  expect(ago(null, 0)).toBe("–");
  expect(ago(0, 1e12)).toBe("–");
  expect(ago(1000, 1500)).toBe("just now");
  expect(ago(1000, 4700)).toBe("3 s ago");
  expect(ago(1000, 126_000)).toBe("2 min 5 s ago");
});

test("ids by their beginning, states as words", () => {
  expect(shortId("0123456789abcdef")).toBe("0123456789ab…");
  expect(shortId("01000000")).toBe("01000000");
  expect(words("PENDING_NODE_ASSIGNMENT")).toBe("Pending node assignment");
});
