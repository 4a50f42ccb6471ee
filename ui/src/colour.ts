// A colour for each name, readable on light and on dark: by its hash, so it is the same tomorrow;
// but names that are on the page together differ as long as there are colours.

export type Theme = "light" | "dark";

/** Degrees that eyes tell apart. Failures are drawn in red, so red is left out. */
const HUES = [213, 152, 32, 268, 186, 312, 88, 240, 50, 288, 170, 120, 200];
const STRENGTHS: Record<Theme, string[]> = {
  light: ["66% 76%", "46% 66%"],
  dark: ["40% 38%", "36% 50%"],
};
const COLOURS = HUES.length * 2;

/** FNV-1a, mixed once more: its lowest bits alone are poor. */
export function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return Math.imul(h, 0x2c1b3c6d) >>> 0;
}

/** Which name has which colour. Once given it stays. */
export class ColourBook {
  private readonly places = new Map<string, number>();
  private readonly taken = new Set<number>();

  colour(name: string, theme: Theme): string {
    const place = this.place(name);
    const strength = STRENGTHS[theme][Math.floor(place / HUES.length)]!;
    return `hsl(${HUES[place % HUES.length]} ${strength})`;
  }

  /** The name's own place if it is free, else the next one that is. */
  private place(name: string): number {
    const known = this.places.get(name);
    if (known !== undefined) return known;
    let place = hash(name) % HUES.length;
    if (this.taken.size < COLOURS) while (this.taken.has(place)) place = (place + 1) % COLOURS;
    this.taken.add(place);
    this.places.set(name, place);
    return place;
  }
}
