// A table that sorts by a click on its heads, narrows with a filter, and copies as CSV. Only the first rows are drawn; the
// filter and the CSV know all of them.

import type { ComponentChildren } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { number, visible } from "../../model/units";
import { CopyButton } from "../widgets";
import { AS_OPENED, TablePlace, type TableState } from "./place";

export interface Column<Row> {
  title: string;
  help?: string;
  value(row: Row): number | string;
  cell?(row: Row): ComponentChildren;
  /** As text, where `cell` is more than a text. */
  plain?(row: Row): string;
  text?: boolean;
  left?: boolean;
  /** Drawn, but no column of the CSV. */
  picture?: boolean;
}

interface Props<Row> {
  title: string;
  what: string;
  columns: Column<Row>[];
  rows: Row[];
  sort?: number;
  empty: string;
  note?: string;
  rowTitle?: string;
  open?(row: Row): void;
  tools?: ComponentChildren;
}

const DRAWN = 300;

export function SortTable<Row>(props: Props<Row>) {
  const { columns: all, rows, open } = props;
  const place = useContext(TablePlace);
  const [own, setOwn] = useState(AS_OPENED);
  const { order, up, filter, without } = place?.state ?? own;
  const say = place?.say ?? ((change: Partial<TableState>) => setOwn((old) => ({ ...old, ...change })));
  const columns = useMemo(
    () => all.map((column, i) => ({ ...column, out: i > 0 && without.includes(column.title) })),
    [all, without],
  );
  const drawn = columns.filter((column) => !column.out);
  const first = props.sort ?? 0;
  const ordered = order ? columns.findIndex((column) => column.title === order) : -1;
  const sort =
    ordered >= 0 ? { column: ordered, descending: !up } : { column: first, descending: !columns[first].text };
  const [most, setMost] = useState(DRAWN);
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    const named = columns.filter((column) => column.text);
    const kept = rows.filter(
      (row) => !wanted || named.some((column) => String(column.value(row)).toLowerCase().includes(wanted)),
    );
    const value = columns[sort.column].value;
    return kept.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
      return sort.descending ? -order : order;
    });
  }, [rows, columns, sort.column, sort.descending, filter]);
  const sortBy = (column: number) => {
    const descending = column === sort.column ? !sort.descending : !columns[column].text;
    say({ order: columns[column].title, up: !descending });
  };
  return (
    <>
      <div class="toolbar">
        {props.title ? <h2>{props.title}</h2> : null}
        <span class="quiet">{props.note ?? number(rows.length)}</span>
        {props.tools}
        <span class="grow" />
        {rows.length ? (
          <>
            <input
              type="search"
              placeholder={`Filter ${props.what}`}
              aria-label={`Filter ${props.what}`}
              spellcheck={false}
              value={filter}
              onInput={(event) => say({ filter: event.currentTarget.value })}
            />
            <ColumnChoice columns={columns} choose={(title) => say({ without: toggled(without, title) })} />
            <CopyButton text={() => csv(drawn, shown)} label={`${props.what} as CSV`} shown="copy CSV" />
            <CopyButton text={() => markdown(drawn, shown)} label={`${props.what} as Markdown`} shown="copy Markdown" />
          </>
        ) : null}
      </div>
      {rows.length ? (
        <div class="table-wrap">
          <table class="data">
            <thead>
              <tr>
                {columns.map((column, i) =>
                  column.out ? null : (
                    <th
                      scope="col"
                      class={column.text || column.left ? "text" : ""}
                      aria-sort={i !== sort.column ? "none" : sort.descending ? "descending" : "ascending"}
                    >
                      {column.title ? (
                        <button type="button" title={column.help} onClick={() => sortBy(i)}>
                          {column.title}
                        </button>
                      ) : (
                        <span class="offscreen">share</span>
                      )}
                    </th>
                  ),
                )}
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, most).map((row) => (
                <tr
                  class={open ? "link" : ""}
                  tabIndex={open ? 0 : undefined}
                  title={props.rowTitle}
                  onClick={open && (() => open(row))}
                  onKeyDown={open && ((event) => event.key === "Enter" && open(row))}
                >
                  {drawn.map((column) => (
                    <td class={column.text || column.left ? "text" : ""}>
                      {column.cell ? column.cell(row) : visible(String(column.value(row)))}
                    </td>
                  ))}
                </tr>
              ))}
              {shown.length ? null : (
                <tr>
                  <td class="text quiet" colSpan={drawn.length}>
                    Nothing here has that name.
                  </td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="quiet empty">{props.empty}</p>
      )}
      {shown.length > most ? (
        <button type="button" class="plain" onClick={() => setMost(most * 4)}>
          Show more of {number(shown.length)}
        </button>
      ) : null}
    </>
  );
}

/** Every column but the first can be left out. */
function ColumnChoice(props: { columns: { title: string; out: boolean }[]; choose(title: string): void }) {
  return (
    <details class="column-choice">
      <summary>columns</summary>
      <div>
        {props.columns.slice(1).map(({ title, out }) =>
          title ? (
            <label>
              <input type="checkbox" checked={!out} onChange={() => props.choose(title)} />
              {title}
            </label>
          ) : null,
        )}
      </div>
    </details>
  );
}

function toggled(listed: readonly string[], one: string): string[] {
  return listed.includes(one) ? listed.filter((other) => other !== one) : [...listed, one];
}

const MOST_MARKDOWN = 30;

/** The first rows as a person reads them, for an issue or a chat. */
export function markdown<Row>(columns: Column<Row>[], rows: Row[]): string {
  const used = columns.filter((column) => !column.picture);
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("`", "'").replace(/\s+/g, " ")).join(" | ")} |`;
  const cell = (column: Column<Row>, row: Row) => {
    const shown = column.plain?.(row) ?? column.cell?.(row);
    return visible(typeof shown === "string" || typeof shown === "number" ? String(shown) : String(column.value(row)));
  };
  return [
    line(used.map((column) => column.title)),
    line(used.map((column) => (column.text || column.left ? "---" : "---:"))),
    ...rows.slice(0, MOST_MARKDOWN).map((row) => line(used.map((column) => cell(column, row)))),
    "",
  ].join("\n");
}

/** Base units (ns, bytes); texts quoted where they need it; what a spreadsheet would run as a formula is made text. */
export function csv<Row>(columns: Column<Row>[], rows: Row[]): string {
  const used = columns.filter((column) => !column.picture);
  const cell = (value: number | string) => {
    if (typeof value === "number") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [used.map((column) => cell(column.title)), ...rows.map((row) => used.map((c) => cell(c.value(row))))];
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}
