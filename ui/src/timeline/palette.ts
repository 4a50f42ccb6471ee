// The page's colours, for canvases: they cannot read style sheets themselves.
import { theme } from "../theme";
import type { Theme } from "../colour";

export interface Palette {
  theme: Theme;
  ground: string;
  line: string;
  heading: string;
  text: string;
  faint: string;
  accent: string;
  failed: string;
  font: string;
}

export function paletteOf(element: HTMLElement): Palette {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    theme: theme.get(),
    ground: colour("--card"),
    line: colour("--line"),
    heading: colour("--sunken"),
    text: colour("--text"),
    faint: colour("--faint"),
    accent: colour("--accent"),
    failed: colour("--failed"),
    font: `12px ${style.fontFamily}`,
  };
}
