// What is typed into a filter box: words with '=' or '!=' are conditions on a column, which the
// server checks; the rest is looked for in names. `name=f state!=FINISHED tile` has all of it.

export interface Query {
  filters: string[];
  text: string;
}

export function parseQuery(typed: string): Query {
  const filters: string[] = [];
  const rest: string[] = [];
  // A value with spaces is put in quotes: name="my task".
  for (const word of typed.match(/[a-z_]+!?="[^"]*"|\S+/gi) ?? []) {
    const match = /^([a-z_]+)(!?=)"?([^"]+)"?$/i.exec(word);
    if (match) filters.push(`${match[1]!.toLowerCase()}${match[2]}${match[3]}`);
    else rest.push(word);
  }
  return { filters, text: rest.join(" ") };
}

/** A condition as it would be typed. */
export function condition(key: string, value: string): string {
  return /\s/.test(value) ? `${key}="${value}"` : `${key}=${value}`;
}

/** The path of a list on the server. */
export function listPath(
  resource: string,
  query: Query,
  page: { limit: number; offset: number; sort?: string },
): string {
  const params = new URLSearchParams();
  for (const filter of query.filters) params.append("filter", filter);
  if (query.text) params.set("q", query.text);
  params.set("limit", String(page.limit));
  if (page.offset) params.set("offset", String(page.offset));
  if (page.sort) params.set("sort", page.sort);
  return `${resource}?${params}`;
}
