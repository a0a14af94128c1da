// Columns that several tables have.

import { duration, share, size } from "../../model/units";
import { Bar } from "../widgets";
import type { Column } from "./table";

/** The share that a table is ordered by, as a figure and a bar from zero. */
export function shared<Row>(
  title: string,
  value: (row: Row) => number,
  rows: Row[],
  total: number,
  kind: (row: Row) => string,
) {
  const most = Math.max(...rows.map(value), 1);
  const column: Column<Row> = {
    title,
    value: (row) => value(row) / (total || 1),
    plain: (row) => share(value(row), total),
    cell: (row) => (
      <span class="with-bar">
        {share(value(row), total)}
        <Bar parts={[[value(row) / most, kind(row)]]} />
      </span>
    ),
  };
  return column;
}

export function time<Row>(title: string, value: (row: Row) => number, help?: string): Column<Row> {
  return { title, value, cell: (row) => duration(value(row)), help };
}

export function bytes<Row>(title: string, value: (row: Row) => number, help?: string): Column<Row> {
  return { title, value, cell: (row) => size(value(row)), help };
}
