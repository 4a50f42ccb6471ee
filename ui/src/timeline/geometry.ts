// Which part of time is seen, and where a moment is on the screen. Pure.

/** Milliseconds since 1970, with fractions. */
export interface Range {
  from: number;
  to: number;
}

/** The narrowest view: moments since 1970 in 64 bits are exact to a fraction of a microsecond. */
const NARROWEST_MS = 0.02;
/** Room at both sides when everything is seen. */
const MARGIN = 0.02;

export function spanOf(range: Range): number {
  return range.to - range.from;
}

/** All there is, with a little room around it. */
export function whole(first: number, last: number): Range {
  const span = Math.max(last - first, 1);
  return { from: first - span * MARGIN, to: last + span * MARGIN };
}

/** The nearest view that shows no more than `limits` and no less than can be told apart. */
export function clamp(view: Range, limits: Range): Range {
  const most = spanOf(limits);
  const span = Math.min(Math.max(spanOf(view), NARROWEST_MS), most);
  const middle = (view.from + view.to) / 2;
  const from = Math.min(Math.max(middle - span / 2, limits.from), limits.to - span);
  return { from, to: from + span };
}

/** Zooms so that the moment `at` stays where it is on the screen. A factor below 1 zooms in. */
export function zoom(view: Range, factor: number, at: number, limits: Range): Range {
  const least = NARROWEST_MS / spanOf(view);
  const most = spanOf(limits) / spanOf(view);
  const by = Math.min(Math.max(factor, least), most);
  return clamp({ from: at - (at - view.from) * by, to: at + (view.to - at) * by }, limits);
}

export function pan(view: Range, by: number, limits: Range): Range {
  return clamp({ from: view.from + by, to: view.to + by }, limits);
}

/** The view between two, for gliding from one to the other. Zooming is even in its logarithm. */
export function between(one: Range, other: Range, share: number): Range {
  const a = spanOf(one);
  const b = spanOf(other);
  const span = a * (b / a) ** share;
  // What stays in place while the span changes; without a change of span it is a plain shift.
  const moved = Math.abs(b - a) < 1e-9 * a ? share : (span - a) / (b - a);
  const from = one.from + (other.from - one.from) * moved;
  return { from, to: from + span };
}

export function toX(moment: number, view: Range, width: number): number {
  return ((moment - view.from) / spanOf(view)) * width;
}

export function toMoment(x: number, view: Range, width: number): number {
  return view.from + (x / width) * spanOf(view);
}

/** Whether data made for `have` at `haveWidth` pixels are good enough for a view, or new are due. */
export function covers(have: Range, haveWidth: number, view: Range, width: number): boolean {
  if (have.from > view.from || have.to < view.to) return false;
  const fineness = spanOf(have) / haveWidth / (spanOf(view) / width);
  return fineness < 1.5 && fineness > 1 / 6;
}

export interface Tick {
  moment: number;
  label: string;
}

/** Round moments, counted from `zero`, so far apart that their labels fit. */
export function ticks(view: Range, width: number, zero: number): Tick[] {
  const step = roundStep((spanOf(view) / width) * 96);
  const found: Tick[] = [];
  for (let i = Math.ceil((view.from - zero) / step); i * step <= view.to - zero; i++) {
    found.push({ moment: zero + i * step, label: tickLabel(i * step, step) });
  }
  return found;
}

/** The least of 1, 2, 5 times a power of ten, or of round minutes and hours, that is not less. */
function roundStep(ms: number): number {
  for (const step of [60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400]) {
    if (ms > 30_000 && step * 1000 >= ms) return step * 1000;
  }
  const power = 10 ** Math.floor(Math.log10(ms));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= ms) ?? 10);
}

/** Since the beginning, with as many digits as the step needs. */
function tickLabel(ms: number, step: number): string {
  const sign = ms < -step / 2 ? "-" : "";
  const size = Math.abs(ms);
  if (step >= 60_000) {
    const minutes = Math.round(size / 60_000);
    return minutes < 60 ? `${sign}${minutes} min` : `${sign}${+(minutes / 60).toFixed(2)} h`;
  }
  if (size < step / 2) return "0";
  const [scale, unit] = step >= 100 ? [1000, "s"] : step >= 0.1 ? [1, "ms"] : [0.001, "µs"];
  const places = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
  return `${sign}${grouped(size / scale, places)} ${unit}`;
}

function grouped(n: number, places: number): string {
  return n.toLocaleString("en-US", {
    minimumFractionDigits: places,
    maximumFractionDigits: places,
  });
}
