// Numbers, moments and ids as people read them. Pure: the time is an argument.

const grouped = new Intl.NumberFormat("en-US");

/** 1234567 as 1,234,567; what is not known as a dash. */
export function count(n: number | null | undefined): string {
  return n == null ? "–" : grouped.format(n);
}

/** 1234567 as 1.23 M, for places where a number must be short. */
export function shortCount(n: number): string {
  if (n < 10_000) return grouped.format(Math.round(n));
  const [scale, unit] = n < 1e6 ? [1e3, "k"] : n < 1e9 ? [1e6, "M"] : [1e9, "G"];
  return `${digits(n / scale)} ${unit}`;
}

/** A share of a resource, which may be a fraction: 4, 0.5, 1.25. */
export function amount(n: number): string {
  return String(Math.round(n * 100) / 100);
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n: number | null | undefined): string {
  if (n == null) return "–";
  let unit = 0;
  while (n >= 1024 && unit < BYTE_UNITS.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 ? n : digits(n)} ${BYTE_UNITS[unit]}`;
}

/** A duration in milliseconds with the unit that suits it. */
export function duration(ms: number | null | undefined): string {
  if (ms == null) return "–";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms === 0) return "0 s";
  if (ms < 0.001) return `${Math.round(ms * 1e6)} ns`;
  if (ms < 1) return `${digits(ms * 1e3)} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  if (ms < 60_000) return `${digits(ms / 1000)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 3600) return pair(seconds, 60, "min", "s");
  if (seconds < 86_400) return pair(Math.floor(seconds / 60), 60, "h", "min");
  return pair(Math.floor(seconds / 3600), 24, "d", "h");
}

/** How long ago a moment was. */
export function ago(moment: number | null | undefined, now: number): string {
  // No moment is 0: nobody ran this in 1970.
  if (!moment) return "–";
  const passed = now - moment;
  if (passed < 1000) return "just now";
  return `${duration(passed < 60_000 ? Math.floor(passed / 1000) * 1000 : passed)} ago`;
}

/** The time of day, in this browser's time zone. */
export function clock(moment: number | null | undefined): string {
  if (moment == null) return "–";
  const date = new Date(moment);
  const two = (n: number) => String(n).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** The beginning of an id: that is where the ids of one program differ. */
export function shortId(id: string): string {
  return id.length > 14 ? `${id.slice(0, 12)}…` : id;
}

/** RUNNING as Running, PENDING_NODE_ASSIGNMENT as Pending node assignment. */
export function words(constant: string): string {
  const text = constant.replaceAll("_", " ").toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "1 node", "3 nodes". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Three digits at most: 1.23, 12.3, 123. */
function digits(n: number): string {
  const places = n < 9.995 ? 2 : n < 99.95 ? 1 : 0;
  return String(Number(n.toFixed(places)));
}

function pair(n: number, base: number, large: string, small: string): string {
  const rest = n % base;
  return `${Math.floor(n / base)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}
