// A page that is one list: a filter box, chips for what is filtered most, a table and its pages.
// What is chosen is in the address.
import type { ComponentChildren } from "preact";
import { count, plural } from "../format";
import { useLoad } from "../load";
import { listPath, parseQuery } from "../query";
import { link, replace, type Route } from "../router";
import type { Page } from "../rows";
import { Empty, Failure } from "./notice";
import { Paging } from "./paging";
import { SearchBox } from "./search-box";
import { Table, type Column } from "./table";

export interface Chip {
  label: string;
  /** Its name in the address. */
  value: string;
  filters: string[];
  count?: number | undefined;
  tone?: string;
}

interface ListProps<Row> {
  route: Route;
  resource: string;
  /** What a row is, and several: "task", "tasks". */
  noun: string;
  nouns?: string;
  columns: Column<Row>[];
  keyOf: (row: Row) => string;
  href?: (row: Row) => string;
  sort: string;
  chips?: Chip[];
  /** What is said when there is not one row at all. */
  empty: ComponentChildren;
}

const PAGE = 100;

export function List<Row>(props: ListProps<Row>) {
  const {
    route,
    resource,
    noun,
    nouns = `${noun}s`,
    columns,
    keyOf,
    href,
    chips = [],
    empty,
  } = props;
  const typed = route.params.get("q") ?? "";
  const chip = chips.find(({ value }) => value === route.params.get("state"));
  const sort = route.params.get("sort") ?? props.sort;
  const offset = Math.max(0, Number(route.params.get("offset")) || 0);
  const query = parseQuery(typed);
  query.filters.push(...(chip?.filters ?? []));
  const { data, error, loading, reload } = useLoad<Page<Row>>(
    listPath(resource, query, { limit: PAGE, offset, sort }),
  );

  /** The same list, chosen otherwise; from its beginning unless said. */
  const change = (next: Record<string, string | number>) =>
    replace(
      link(route.path, { q: typed, state: chip?.value, sort: route.params.get("sort"), ...next }),
    );

  return (
    <>
      <div class="toolbar">
        <SearchBox
          label={`Filter ${nouns}`}
          placeholder="Part of a name, or field=value"
          value={typed}
          onValue={(q) => change({ q })}
        />
        {chips.length > 0 && (
          <div class="chips" role="group" aria-label="State">
            <button type="button" aria-pressed={!chip} onClick={() => change({ state: "" })}>
              All
            </button>
            {chips.map(({ label, value, count: n, tone }) => (
              <button
                key={value}
                type="button"
                aria-pressed={chip?.value === value}
                onClick={() => change({ state: value })}
              >
                {tone && <span class={`dot tone-${tone}`} />}
                {label}
                {n !== undefined && <b>{count(n)}</b>}
              </button>
            ))}
          </div>
        )}
        <span class="found" aria-live="polite" data-loading={loading}>
          {data &&
            (data.filtered === data.total
              ? plural(data.total, noun, nouns)
              : `${count(data.filtered)} of ${plural(data.total, noun, nouns)}`)}
        </span>
      </div>
      {error && <Failure error={error} retry={reload} />}
      {data?.notes?.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      {data && data.rows.length > 0 && (
        <>
          <Table
            label={nouns}
            columns={columns}
            rows={data.rows}
            keyOf={keyOf}
            sort={sort}
            onSort={(next) => change({ sort: next })}
            {...(href && { href })}
          />
          <Paging
            offset={offset}
            limit={PAGE}
            of={data.filtered}
            go={(to) => change({ offset: to })}
          />
        </>
      )}
      {data && data.rows.length === 0 && !error && (
        <Empty>
          {data.total === 0 ? empty : `No ${noun} is like that. Change the filter to see more.`}
        </Empty>
      )}
      {!data && !error && <Empty>Loading…</Empty>}
    </>
  );
}
