// Light or dark: as the system says, unless the reader chose. The choice stays in this browser.
import type { Theme } from "./colour";
import { cell } from "./store";

export type Choice = "system" | Theme;

const KEY = "oxiray-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const choice = cell<Choice>(stored());
export const theme = cell<Theme>(resolved());

/** Puts the theme on the page and keeps it there. */
export function start(): void {
  const apply = () => {
    // First the page, then those who follow: charts read their colours from it.
    document.documentElement.dataset["theme"] = resolved();
    theme.set(resolved());
  };
  apply();
  dark.addEventListener("change", apply);
  choice.subscribe(apply);
}

export function choose(next: Choice): void {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // No storage, for instance in a private window: the choice lasts as long as the page.
  }
  choice.set(next);
}

function resolved(): Theme {
  const chosen = choice.get();
  return chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
}

function stored(): Choice {
  try {
    const text = localStorage.getItem(KEY);
    return text === "light" || text === "dark" ? text : "system";
  } catch {
    return "system";
  }
}
