import { expect, test } from "vitest";
import { findLines, markRuns } from "../src/find";
import { LogBuffer, LONGEST_LINE } from "../src/log-buffer";

const texts = (buffer: LogBuffer) => buffer.lines.map((line) => line.text);

test("pieces may be cut anywhere", () => {
  const whole = "one\ntwo\n\nfour\nfi";
  for (let i = 0; i <= whole.length; i++) {
    const buffer = new LogBuffer();
    buffer.append(whole.slice(0, i));
    buffer.append(whole.slice(i));
    expect(texts(buffer)).toEqual(["one", "two", "", "four", "fi"]);
  }
});

test("what came before goes before, also within a line", () => {
  const whole = "one\ntwo\nthree\n";
  for (let i = 0; i < whole.length; i++) {
    const buffer = new LogBuffer();
    buffer.append(whole.slice(i));
    buffer.prepend(whole.slice(0, i));
    expect(texts(buffer)).toEqual(["one", "two", "three"]);
  }
});

test("colours go on over line ends, wherever the text was cut", () => {
  const buffer = new LogBuffer();
  buffer.append("\x1b[31mred\nstill\x1b[0m\nplain");
  expect(buffer.lines.map((line) => line.style)).toEqual([{}, { colour: 1 }, {}]);
});

test("a line without end is cut, and there is a bound to it all", () => {
  const buffer = new LogBuffer(3 * LONGEST_LINE);
  buffer.append("x".repeat(10 * LONGEST_LINE));
  expect(buffer.lines.length).toBe(3);
  expect(buffer.dropped).toBe(true);
  for (const line of buffer.lines) expect(line.text.length).toBe(LONGEST_LINE);
});

test("finding sees what is shown, not what it was written with", () => {
  const lines = [{ text: "\x1b[1mEr\x1b[0mror" }, { text: "fine" }, { text: "10%\rerror" }];
  expect(findLines(lines, "ERROR")).toEqual([0, 2]);
  expect(findLines(lines, "[1m")).toEqual([]);
  expect(findLines(lines, "")).toEqual([]);
});

test("what is found is marked across styles", () => {
  const runs = [
    { text: "an Er", style: { bold: true } },
    { text: "ror error", style: {} },
  ];
  expect(markRuns(runs, "error").map((run) => [run.text, run.marked])).toEqual([
    ["an ", false],
    ["Er", true],
    ["ror", true],
    [" ", false],
    ["error", true],
  ]);
});
