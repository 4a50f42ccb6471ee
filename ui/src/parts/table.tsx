// Tables of rows. On narrow screens each row becomes a small card: that is done by the style sheet,
// with the columns' names from `data-label`, so the roles are said explicitly.
import type { ComponentChildren } from "preact";
import { go } from "../router";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** The API's name of the field by which the server sorts. */
  sort?: string;
  numeric?: boolean;
  /** The column that may take what room is left; others are as wide as their words. */
  wide?: boolean;
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  /** Where a click on a row leads; the same link should be in one of its cells, for keyboards. */
  href?: (row: Row) => string;
  sort?: string;
  onSort?: (sort: string) => void;
}

export function Table<Row>({ label, columns, rows, keyOf, href, sort, onSort }: TableProps<Row>) {
  return (
    <div class="table-frame">
      <table role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <Heading key={column.title} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              role="row"
              class={href ? "clickable" : ""}
              onClick={href && ((event) => follow(event, href(row)))}
            >
              {columns.map((column) => (
                <td key={column.title} role="cell" data-label={column.title} class={kind(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadingProps<Row> {
  column: Column<Row>;
  sort: string | undefined;
  onSort: ((sort: string) => void) | undefined;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>) {
  const order =
    sort === column.sort ? "ascending" : sort === `-${column.sort}` ? "descending" : "none";
  if (!column.sort || !onSort) {
    return (
      <th role="columnheader" scope="col" class={kind(column)}>
        {column.title}
      </th>
    );
  }
  const next = order === "descending" ? column.sort : `-${column.sort}`;
  return (
    <th role="columnheader" scope="col" class={kind(column)} aria-sort={order}>
      <button type="button" class="sort" onClick={() => onSort(next)}>
        {column.title}
        <span aria-hidden="true">
          {order === "none" ? "" : order === "ascending" ? " ↑" : " ↓"}
        </span>
      </button>
    </th>
  );
}

function kind<Row>(column: Column<Row>): string {
  return column.numeric ? "numeric" : column.wide ? "wide" : "";
}

/** Clicks on links and buttons are theirs, and text can be selected. */
function follow(event: MouseEvent, address: string): void {
  const target = event.target as Element;
  if (target.closest("a, button") || getSelection()?.toString()) return;
  if (event.metaKey || event.ctrlKey) window.open(address);
  else go(address);
}
