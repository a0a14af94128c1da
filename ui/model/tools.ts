// What event tools have found (`leadline run --tool`), from the records of the processes in meta.json: someone else's data, so
// every value is looked at. python/leadline/report/tools.py says the same as text.

import type { Profile } from "./profile";
import { isObject } from "./reader";
import { inUnit, number, percent } from "./units";

export interface ToolColumn {
  name: string;
  unit: string;
}

export type ToolOutput =
  | { kind: "table"; name: string; note: string; columns: ToolColumn[]; rows: unknown[][]; inAll: number }
  | { kind: "curve"; name: string; unit: string; x: number[]; xUnit: string; series: [string, (number | null)[]][] }
  | HeatOutput
  | { kind: "text"; name: string; text: string };

export interface HeatOutput {
  kind: "heat";
  name: string;
  what: string;
  rows: string[];
  columns: string[];
  unit: string;
  cells: number[][];
}

export interface ToolResult {
  tool: string;
  /** Which process and backends. */
  note: string;
  /** What is to be known before the results: why it ended early, what it did not see. */
  warnings: string[];
  outputs: ToolOutput[];
}

export function toolResults(profile: Profile): ToolResult[] {
  const records = profile.meta.processes.filter(isObject).filter((one) => Array.isArray(one.tools) && one.tools.length);
  const all = records.flatMap((record) =>
    (record.tools as unknown[]).filter(isObject).map((found) => ({ record, found })),
  );
  // Of the processes that a program starts most run nothing that a tool looks at.
  const saw = all.filter(({ found }) => found.rows || found.launches || found.problem).map(({ record }) => record);
  const shown = all.filter(({ record }) => (saw.length ? saw.includes(record) : record === records[0]));
  const several = new Set(shown.map(({ record }) => record)).size > 1;
  return shown.map(({ record, found }) => resultOf(found, several ? processName(record) : ""));
}

function processName(record: Record<string, unknown>): string {
  const name = typeof record.rank === "number" && record.rank >= 0 ? `rank ${record.rank}` : `process ${record.pid}`;
  return record.forked_from ? `${name}, forked from ${record.forked_from}` : name;
}

function resultOf(found: Record<string, unknown>, process: string): ToolResult {
  const backends = list(found.backends).map(String).join("+");
  const range = found.range ? `only ${text(found.range)}` : "";
  const warnings: string[] = [];
  if (found.problem) warnings.push(`The tool was stopped: ${text(found.problem)}. Its results until then follow.`);
  if (isObject(found.lost))
    for (const [what, count] of Object.entries(found.lost))
      warnings.push(`Not seen: ${number(Number(count))} ${what}; sums are lower bounds.`);
  if (found.first) warnings.push(`First: ${text(found.first)}`);
  if (found.nothing) warnings.push(`It saw no events: ${text(found.nothing)}.`);
  return {
    tool: text(found.tool) || "?",
    note: [process, backends && `backend ${backends}`, range].filter(Boolean).join(", "),
    warnings,
    outputs: list(found.outputs)
      .filter(isObject)
      .filter((one) => !found.nothing || one.kind === "text")
      .map(outputOf),
  };
}

function outputOf(output: Record<string, unknown>): ToolOutput {
  const name = text(output.name);
  if (output.kind === "table") {
    const rows = list(output.rows).filter((row): row is unknown[] => Array.isArray(row));
    const columns = list(output.columns)
      .filter(isObject)
      .map((column) => ({ name: text(column.name), unit: text(column.unit) }));
    const inAll = typeof output.rows_in_all === "number" ? output.rows_in_all : rows.length;
    return { kind: "table", name, note: text(output.note), columns, rows, inAll };
  }
  if (output.kind === "curve") {
    const series = isObject(output.series) ? Object.entries(output.series) : [];
    return {
      kind: "curve",
      name,
      unit: text(output.unit),
      x: list(output.x).map(Number),
      xUnit: text(output.x_unit),
      series: series.map(([one, values]) => [one, list(values).map(numberOr)]),
    };
  }
  if (output.kind === "heat") {
    const what = [text(output.row_name), text(output.column_name)].filter(Boolean).join(" by ");
    const cells = list(output.cells).map((row) => list(row).map((value) => numberOr(value) ?? 0));
    const [rows, columns] = [list(output.rows).map(String), list(output.columns).map(String)];
    return { kind: "heat", name, what, rows, columns, unit: text(output.unit), cells };
  }
  if (output.kind === "text") return { kind: "text", name, text: text(output.text) };
  return { kind: "text", name, text: `An output of the kind ${text(output.kind)}, which this page cannot show.` };
}

/** The column of a table that bars are drawn of, -1 for none: the one that its rows are sorted by, largest first, else the
 *  first one that has a unit. Bars compare, so there are none of one or two rows, nor of values below 0. */
export function barColumn(columns: ToolColumn[], rows: unknown[][]): number {
  if (rows.length < 3) return -1;
  const values = columns.map((_, at) => rows.map((row) => row[at]));
  const drawable = values.map((of) => of.every((value) => typeof value === "number" && value >= 0) && of.some(Boolean));
  const falls = (of: unknown[]) => of.every((value, at) => at === 0 || Number(value) <= Number(of[at - 1]));
  const sorted = values.findIndex((of, at) => drawable[at] && falls(of) && of[0] !== of[of.length - 1]);
  return sorted >= 0 ? sorted : columns.findIndex((column, at) => drawable[at] && column.unit !== "");
}

/** One of `wide` cells drawn of a row: the most of the columns that it stands for, and what it says in words. */
export function heatCell(heat: HeatOutput, row: number, at: number, wide: number): { value: number; text: string } {
  const values = heat.cells[row] ?? [];
  const begin = Math.floor((at * values.length) / wide);
  const end = Math.max(begin + 1, Math.ceil(((at + 1) * values.length) / wide));
  const value = Math.max(0, ...values.slice(begin, end));
  const [first, last] = [heat.columns[begin] ?? "", heat.columns[end - 1] ?? ""];
  const where = [heat.rows[row] ?? "", last === first ? first : `${first} to ${last}`].filter(Boolean).join(", ");
  const unit = heat.unit && !["ns", "bytes", "%"].includes(heat.unit) ? ` ${heat.unit}` : "";
  return { value, text: `${where}: ${end - begin > 1 ? "at most " : ""}${cellText(value, heat.unit)}${unit}` };
}

/** What a cell says; a path by its last place. */
export function cellText(value: unknown, unit: string): string {
  if (value === null || value === undefined) return "n/a";
  if (isObject(value)) return text(value.short) || list(value.path).map(String).join(" → ") || "unknown";
  if (typeof value !== "number") return String(value);
  if (unit === "%") return percent(value / 100);
  return unit === "ns" || unit === "bytes" ? inUnit(value, unit) : number(value);
}

/** The row of the tree that a cell names; null where it names none. */
export function cellNode(value: unknown, size: number): number | null {
  const node = isObject(value) ? value.node : null;
  return typeof node === "number" && Number.isInteger(node) && node >= 0 && node < size ? node : null;
}

const numberOr = (value: unknown): number | null => (typeof value === "number" ? value : null);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");
