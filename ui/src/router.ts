// Which page is shown: the part of the address after '#', as a path and parameters. Filters are
// in there too, so that an address can be passed on and the back button goes back.
import { useStore, type Store } from "./store";

export interface Route {
  /** The path's parts, decoded: `#/logs/ab12/worker-7.out` is ["logs", "ab12", "worker-7.out"]. */
  path: string[];
  params: URLSearchParams;
}

export function parse(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    params: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)),
  };
}

/** The address of a page; parameters that are empty or absent are left out. */
export function link(
  path: string[],
  params: Record<string, string | number | null | undefined> = {},
): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value != null && value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

const route: Store<Route> = {
  get: current,
  subscribe(changed) {
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  },
};

export function useRoute(): Route {
  return useStore(route);
}

/** Goes to another page, as a link would. */
export function go(address: string): void {
  location.hash = address;
}

/** Changes this page's parameters without a step in the history: for what is typed letter by letter. */
export function replace(address: string): void {
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

let last: { hash: string; route: Route } | undefined;

/** The same object for the same address: hooks compare by identity. */
function current(): Route {
  if (last?.hash !== location.hash) last = { hash: location.hash, route: parse(location.hash) };
  return last.route;
}

/** A stray '%' is text that somebody typed, not a reason to fail. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
