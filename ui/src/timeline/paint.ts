// Painting of the timeline: lanes, spans, the axis, what is selected and what it is bound to. One
// call paints one frame, from what is loaded; it asks for nothing and keeps nothing.
import type { Span, TaskDetail } from "../rows";
import { spanOf, ticks, toX, type Range } from "./geometry";
import { laneAt, laneOf, type Lane, type Layout } from "./lanes";
import type { Selection } from "./model";
import type { Palette } from "./palette";
import { firstAt, type Dataset, type Row } from "./spans";

export const AXIS_HEIGHT = 28;

export interface Scene {
  width: number;
  height: number;
  /** Width of the labels at the left. */
  gutter: number;
  view: Range;
  zero: number;
  /** How far the lanes are scrolled. */
  scroll: number;
  layout: Layout;
  overview: Dataset | null;
  detail: Dataset | null;
  matches: Dataset | null;
  selection: Selection | null;
  hover: { lane: Lane; span: Span } | null;
  palette: Palette;
  /** The colour of a name. */
  colour: (name: string) => string;
}

/** Names in spans narrower than this would be dots. */
const NARROWEST_NAME = 34;
const PAD = 3;

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, gutter, palette, layout, scroll } = scene;
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, height);
  const first = laneAt(layout.lanes, scroll);
  const from = first ? layout.lanes.indexOf(first) : 0;

  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, width, height - AXIS_HEIGHT);
  context.clip();
  context.translate(0, AXIS_HEIGHT - scroll);
  const seen: Lane[] = [];
  for (let i = from; i < layout.lanes.length; i++) {
    const lane = layout.lanes[i]!;
    if (lane.top > scroll + height) break;
    seen.push(lane);
  }
  paintGrid(context, scene);
  for (const lane of seen) paintLane(context, scene, lane);
  paintBonds(context, scene);
  for (const lane of seen) paintLabel(context, scene, lane);
  context.restore();

  paintAxis(context, scene);
  context.fillStyle = palette.line;
  context.fillRect(gutter - 1, 0, 1, height);
}

function paintLane(context: CanvasRenderingContext2D, scene: Scene, lane: Lane): void {
  const { width, gutter, palette, detail, overview, matches, view } = scene;
  if (lane.key === null) {
    context.fillStyle = palette.heading;
    context.fillRect(0, lane.top, width, lane.height);
    return;
  }
  context.fillStyle = palette.line;
  context.fillRect(gutter, lane.top + lane.height - 1, width - gutter, 1);
  context.save();
  context.beginPath();
  context.rect(gutter, lane.top, width - gutter, lane.height);
  context.clip();
  context.globalAlpha = matches ? 0.16 : 1;
  const finer = detail?.rows.get(lane.key);
  const inDetail = detail !== null && detail.from <= view.from && detail.to >= view.to;
  if (!inDetail && overview) {
    const coarse = overview.rows.get(lane.key);
    if (coarse) paintSpans(context, scene, lane, coarse, overview, without(view, detail));
  }
  if (finer && detail) paintSpans(context, scene, lane, finer, detail, [view]);
  if (matches) {
    context.globalAlpha = 1;
    const matching = matches.rows.get(lane.key);
    if (matching) paintSpans(context, scene, lane, matching, matches, [view]);
  }
  context.restore();
}

/** The parts of a view that finer data do not have. */
function without(view: Range, detail: Dataset | null): Range[] {
  if (!detail || detail.from >= view.to || detail.to <= view.from) return [view];
  return [
    { from: view.from, to: detail.from },
    { from: detail.to, to: view.to },
  ].filter((part) => part.to > part.from);
}

function hasFailed(span: Span): boolean {
  return span[4] === "FAILED" || span[4] === "CANCELLED";
}

function paintSpans(
  context: CanvasRenderingContext2D,
  scene: Scene,
  lane: Lane,
  row: Row,
  data: Dataset,
  parts: Range[],
): void {
  const { gutter, width, view, palette } = scene;
  const scale = (width - gutter) / spanOf(view);
  const top = lane.top + PAD;
  const height = lane.height - 2 * PAD;
  const named: [Span, number, number][] = [];
  const colours = data.names.map(scene.colour);
  for (const part of parts) {
    const low = gutter + (part.from - view.from) * scale;
    const high = gutter + (part.to - view.from) * scale;
    let covered = -Infinity;
    let colour = "";
    for (let i = firstAt(row, part.from); i < row.spans.length; i++) {
      const span = row.spans[i]!;
      if (span[0] >= part.to) break;
      const x = Math.max(low, gutter + (span[0] - view.from) * scale);
      const end = Math.min(high, gutter + (span[0] + span[1] - view.from) * scale);
      // What would fall within the pixel that was painted last is not seen.
      if (end <= covered && end - x < 1) continue;
      const wide = Math.max(1, end - x);
      covered = x + wide;
      const next = hasFailed(span) ? palette.failed : colours[span[2]]!;
      if (next !== colour) context.fillStyle = colour = next;
      // A hair of ground between neighbours, where there is room for one.
      const gap = wide > 4 ? 1 : 0;
      context.fillRect(x, top, wide - gap, height);
      if (wide > NARROWEST_NAME) named.push([span, x, end]);
    }
  }
  if (!named.length) return;
  context.font = palette.font;
  context.textBaseline = "middle";
  for (const [span, x, end] of named) {
    const name = data.names[span[2]] ?? "";
    const text = span[3] > 1 ? `${name} ×${span[3].toLocaleString("en-US")}` : name;
    context.fillStyle = hasFailed(span) ? "#fff" : palette.text;
    const shown = fitted(context, text, end - x - 10);
    if (shown) context.fillText(shown, x + 5, lane.top + lane.height / 2 + 0.5);
    if (span[4] === "RUNNING" && end < width) {
      context.fillStyle = palette.accent;
      context.fillRect(end - 2, top, 2, height);
    }
  }
}

function paintLabel(context: CanvasRenderingContext2D, scene: Scene, lane: Lane): void {
  const { gutter, palette } = scene;
  context.textBaseline = "middle";
  const middle = lane.top + lane.height / 2 + 0.5;
  if (lane.key === null) {
    context.font = palette.font.replace(/^/, "600 ");
    context.fillStyle = palette.text;
    context.fillText(lane.label, 12, middle);
    return;
  }
  context.fillStyle = palette.ground;
  context.fillRect(0, lane.top, gutter, lane.height);
  context.font = palette.font;
  context.fillStyle = palette.faint;
  context.fillText(lane.label, 12, middle, gutter - 20);
}

function paintGrid(context: CanvasRenderingContext2D, scene: Scene): void {
  const { gutter, width, view, zero, palette, scroll, height } = scene;
  context.fillStyle = palette.line;
  for (const tick of ticks(view, width - gutter, zero)) {
    const x = gutter + toX(tick.moment, view, width - gutter);
    context.fillRect(Math.round(x), scroll, 1, height);
  }
}

function paintAxis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { gutter, width, view, zero, palette } = scene;
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, AXIS_HEIGHT);
  context.fillStyle = palette.line;
  context.fillRect(0, AXIS_HEIGHT - 1, width, 1);
  context.font = palette.font;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(gutter, 0, width - gutter, AXIS_HEIGHT);
  context.clip();
  for (const tick of ticks(view, width - gutter, zero)) {
    const x = Math.round(gutter + toX(tick.moment, view, width - gutter));
    context.fillStyle = palette.line;
    context.fillRect(x, AXIS_HEIGHT - 7, 1, 7);
    context.fillStyle = palette.faint;
    context.fillText(tick.label, x + 5, AXIS_HEIGHT / 2);
  }
  context.restore();
}

/** The selected task, outlined, with lines from what it needs and to what it feeds. */
function paintBonds(context: CanvasRenderingContext2D, scene: Scene): void {
  const { gutter, width, height, scroll, selection, hover, palette } = scene;
  context.save();
  context.beginPath();
  context.rect(gutter, scroll, width - gutter, height);
  context.clip();
  if (hover) {
    const x = gutter + toX(hover.span[0], scene.view, width - gutter);
    const end = gutter + toX(hover.span[0] + hover.span[1], scene.view, width - gutter);
    outline(context, x, end, hover.lane, palette.text, 1);
  }
  if (selection) {
    const self = box(scene, selection.task);
    for (const need of selection.needs) bond(context, box(scene, need), self, palette);
    for (const fed of selection.feeds) bond(context, self, box(scene, fed), palette);
    if (self) {
      paintPhases(context, scene, selection.task, self);
      outline(context, self.x, self.end, self.lane, palette.accent, 2);
    }
  }
  context.restore();
}

interface Box {
  x: number;
  end: number;
  lane: Lane;
}

function box(scene: Scene, task: TaskDetail): Box | null {
  const lane = laneOf(scene.layout, task, [scene.detail, scene.overview]);
  if (!lane || task.start_time_ms === null) return null;
  const room = scene.width - scene.gutter;
  const end = task.end_time_ms ?? Date.now();
  return {
    x: scene.gutter + toX(task.start_time_ms, scene.view, room),
    end: scene.gutter + toX(end, scene.view, room),
    lane,
  };
}

function bond(
  context: CanvasRenderingContext2D,
  from: Box | null,
  to: Box | null,
  palette: Palette,
): void {
  if (!from || !to) return;
  const y1 = from.lane.top + from.lane.height / 2;
  const y2 = to.lane.top + to.lane.height / 2;
  const bend = Math.max(24, Math.min(120, Math.abs(to.x - from.end) / 2));
  context.strokeStyle = context.fillStyle = palette.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(from.end, y1);
  context.bezierCurveTo(from.end + bend, y1, to.x - bend, y2, to.x - 5, y2);
  context.stroke();
  context.beginPath();
  context.moveTo(to.x, y2);
  context.lineTo(to.x - 7, y2 - 4);
  context.lineTo(to.x - 7, y2 + 4);
  context.fill();
  context.beginPath();
  context.arc(from.end, y1, 2.5, 0, 7);
  context.fill();
  outline(context, from.x, from.end, from.lane, palette.accent, 1);
  outline(context, to.x, to.end, to.lane, palette.accent, 1);
}

/** Fetching before and storing after, as thin lines at the foot of the selected task. */
function paintPhases(
  context: CanvasRenderingContext2D,
  scene: Scene,
  task: TaskDetail,
  self: Box,
): void {
  const total = (task.fetch_ms ?? 0) + (task.execute_ms ?? 0) + (task.store_ms ?? 0);
  const wide = self.end - self.x;
  if (!total || wide < 24) return;
  const y = self.lane.top + self.lane.height - PAD - 4;
  context.fillStyle = scene.palette.accent;
  const fetch = ((task.fetch_ms ?? 0) / total) * wide;
  const store = ((task.store_ms ?? 0) / total) * wide;
  context.fillRect(self.x, y, fetch, 3);
  context.fillRect(self.end - store, y, store, 3);
}

function outline(
  context: CanvasRenderingContext2D,
  x: number,
  end: number,
  lane: Lane,
  colour: string,
  thick: number,
): void {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(
    x - 0.5,
    lane.top + PAD - 0.5,
    Math.max(3, end - x),
    lane.height - 2 * PAD + 1,
  );
}

const widths = new Map<string, number>();

/** As much of a text as there is room for. Letters are measured once. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  const letter = letterWidth(context);
  if (text.length * letter <= room) return text;
  const most = Math.floor(room / letter) - 1;
  return most < 2 ? "" : `${text.slice(0, most)}…`;
}

function letterWidth(context: CanvasRenderingContext2D): number {
  let width = widths.get(context.font);
  if (width === undefined) {
    width = context.measureText("abcdefghijklmnopqrstuvwxyz_0123456789").width / 37;
    widths.set(context.font, width);
  }
  return width;
}
