// How a table is looked at, as its address says it: `#tables/grouped?by=operator,phase&order=Calls&filter=mm&without=Share`.

import { createContext } from "preact";

export interface TableState {
  /** Title of the column that orders it; empty: as the table opens. */
  order: string;
  up: boolean;
  filter: string;
  /** Titles of columns that are left out. */
  without: readonly string[];
  /** What it is grouped by; empty: as the table opens. */
  by: readonly string[];
}

export const AS_OPENED: TableState = { order: "", up: false, filter: "", without: [], by: [] };

/** Where a table keeps how it is looked at; null: for itself. */
export const TablePlace = createContext<{ state: TableState; say(change: Partial<TableState>): void } | null>(null);

export function stateOf(parameters: URLSearchParams): TableState {
  return {
    order: parameters.get("order") ?? "",
    up: parameters.has("up"),
    filter: parameters.get("filter") ?? "",
    without: parameters.getAll("without"),
    by: parameters.getAll("by"),
  };
}

export function tableLink(name: string, { order, up, filter, without, by }: TableState): string {
  const parameters = new URLSearchParams();
  if (order) parameters.set("order", order);
  if (order && up) parameters.set("up", "");
  if (filter) parameters.set("filter", filter);
  for (const one of by) parameters.append("by", one);
  for (const one of without) parameters.append("without", one);
  const text = parameters.toString();
  return `#tables/${name}${text ? `?${text}` : ""}`;
}
