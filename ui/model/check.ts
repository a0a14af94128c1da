// Referential integrity: after `checkTables` every id points at a row that exists and the tree is a tree, so nothing that
// follows can index out of bounds or loop without end. The rules are those of python/leadline/profiles/check.py.

import { ProfileFileError } from "./errors";
import type { Column } from "./npy";
import { FrameKindNames, TABLES, type Tables } from "./schema.generated";

export function checkTables(tables: Tables): void {
  for (const name of Object.keys(TABLES) as (keyof Tables)[]) {
    if (name === "strings") continue;
    const columns = TABLES[name].map(([column]) => columnOf(tables, name, column));
    if (columns.some((column) => column.length !== columns[0].length))
      throw contradiction(`the columns of its table ${name} differ in length`);
  }
  checkStrings(tables);
  const rows = (name: string) =>
    name === "strings"
      ? tables.strings.offsets.length - 1
      : columnOf(tables, name as keyof Tables, TABLES[name as keyof Tables][0][0]).length;
  for (const name of Object.keys(TABLES) as (keyof Tables)[])
    for (const [column, , of] of TABLES[name])
      if (of && !(name === "nodes" && column === "parent"))
        checkIds(name, column, columnOf(tables, name, column), rows(of), of);
  checkIds("metrics", "device", tables.metrics.device, rows("devices"), "devices");
  checkIds("events", "device", tables.events.device, rows("devices"), "devices");
  checkNodes(tables);
  const { start_ns: starts } = tables.events;
  for (let i = 1; i < starts.length; i++)
    if (starts[i] < starts[i - 1]) throw contradiction("its events are not ordered by start");
}

function contradiction(what: string): ProfileFileError {
  return new ProfileFileError(`The file cannot be read: ${what}.`);
}

function columnOf(tables: Tables, name: keyof Tables, column: string): Column {
  return (tables[name] as unknown as Record<string, Column>)[column];
}

function checkStrings({ strings }: Tables): void {
  const { bytes, offsets } = strings;
  if (offsets.length < 2 || offsets[0] !== 0 || offsets[1] !== 0)
    throw contradiction("its string table does not begin with the empty string");
  for (let i = 1; i < offsets.length; i++)
    if (offsets[i] < offsets[i - 1]) throw contradiction("its string table points outside its text");
  if (offsets[offsets.length - 1] > bytes.length) throw contradiction("its string table points outside its text");
}

function checkIds(table: string, name: string, column: Column, count: number, of: string): void {
  const least = column instanceof Int16Array || column instanceof Int32Array ? -1 : 0;
  for (let i = 0; i < column.length; i++)
    if (column[i] >= count || column[i] < least)
      throw contradiction(`${table}.${name} holds ${column[i]} where there are ${count} rows of ${of}`);
}

function checkNodes({ nodes, frames }: Tables): void {
  const { parent, frame } = nodes;
  if (!parent.length || parent[0] !== -1 || FrameKindNames[frames.kind[frame[0]]] !== "root")
    throw contradiction("its tree does not begin with a root");
  for (let row = 1; row < parent.length; row++)
    if (parent[row] < 0 || parent[row] >= row)
      throw contradiction("its tree has a node that does not come after its parent");
}
