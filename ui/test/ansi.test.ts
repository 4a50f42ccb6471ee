import { expect, test } from "vitest";
import { parseLine, plainText } from "../src/ansi";

const runs = (text: string) => parseLine(text).runs.map(({ text, style }) => [text, style]);

test("colours and weights begin and end", () => {
  expect(runs("a \x1b[1;31mred\x1b[0m b")).toEqual([
    ["a ", {}],
    ["red", { bold: true, colour: 1 }],
    [" b", {}],
  ]);
  expect(runs("\x1b[96mbright\x1b[39m\x1b[41mback\x1b[49m")).toEqual([
    ["bright", { colour: 14 }],
    ["back", { background: 1 }],
  ]);
});

test("256 colours and true colours", () => {
  expect(runs("\x1b[38;5;9mx")).toEqual([["x", { colour: 9 }]]);
  expect(runs("\x1b[38;5;196mx")).toEqual([["x", { colour: "#ff0000" }]]);
  expect(runs("\x1b[48;5;232mx")).toEqual([["x", { background: "#080808" }]]);
  expect(runs("\x1b[38;2;1;2;300mx")).toEqual([["x", { colour: "#0102ff" }]]);
});

test("a style goes on into the next line", () => {
  const first = parseLine("\x1b[32mgreen");
  expect(parseLine("still", first.style).runs).toEqual([{ text: "still", style: { colour: 2 } }]);
});

test("whatever else a terminal would do is left out", () => {
  expect(plainText("\x1b[2K\x1b[1Gtext\x1b[?25l")).toBe("text");
  expect(plainText("\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link")).toBe("textlink");
  expect(plainText("bell\x07 null\x00 tab\t")).toBe("bell null tab\t");
  expect(plainText("cut off\x1b[3")).toBe("cut off");
  expect(plainText("cut off\x1b")).toBe("cut off");
  expect(plainText("<b>html</b>")).toBe("<b>html</b>");
});

test("a carriage return begins the line anew", () => {
  expect(plainText("10%\r50%\r100%")).toBe("100%");
  expect(plainText("windows\r")).toBe("windows");
});

test("nonsense of any kind is text", () => {
  const alphabet = [
    "\x1b",
    "[",
    "]",
    ";",
    "m",
    "3",
    "8",
    "5",
    "2",
    "\r",
    "\x07",
    "x",
    "\x9b",
    "é",
    "ÿ",
  ];
  let seed = 1;
  for (let i = 0; i < 5000; i++) {
    let line = "";
    for (let n = 0; n < 12; n++) {
      seed = (seed * 16807) % 2147483647;
      line += alphabet[seed % alphabet.length];
    }
    for (const { text } of parseLine(line).runs)
      expect(text).not.toMatch(/[\x00-\x08\x0a-\x1f\x7f]/);
  }
});
