// Two profiles on one tree, as Python has aligned them and counts them at every row (report/compared_tree.py): what the
// flame graph of a comparison draws.

import { fromBase64 } from "./base64";
import type { Comparison } from "./comparison";
import type { NodeRow, Profile } from "./profile";
import { Profile as Made } from "./profile";
import { MetricKindNames, type Tables } from "./schema.generated";

/** Columns are little-endian int32 and float64 in base64. */
export interface ComparedTree {
  parent: string;
  /** Of each profile the aligned row of every node. */
  rows: [string, string];
  /** Rows that have another name after, with it. */
  renamed: [row: number, name: string][];
  /** Before and after, exclusive and of one step. */
  metrics: Record<string, [string, string]>;
}

export interface Diff {
  /** What `leadline diff` says. */
  found: Comparison;
  /** The same rows; their metrics are those before and after, of one step. */
  before: Profile;
  after: Profile;
  /** Of the profiles that are compared, before and after, the row of every node. */
  rowOf: [Int32Array, Int32Array];
  metrics: string[];
}

export function diffOf(before: Profile, after: Profile, found: Comparison, tree: ComparedTree): Diff {
  const parent = new Int32Array(bytesOf(tree.parent));
  const rowOf: Diff["rowOf"] = [new Int32Array(bytesOf(tree.rows[0])), new Int32Array(bytesOf(tree.rows[1]))];
  const shared = unionFrames([before, after], rowOf, parent.length, new Map(tree.renamed));
  const columns = Object.entries(tree.metrics).map(
    ([name, sides]) => [name, sides.map((side) => new Float64Array(bytesOf(side)))] as const,
  );
  const [a, b] = [before, after].map((profile, side) => {
    const values = columns.map(([name, sides]) => [name, sides[side]] as const);
    return new Made(
      { ...emptyTables(profile), ...shared, nodes: { parent, frame: shared.frame }, metrics: metricRows(values) },
      profile.meta,
    );
  });
  const drawn = [a, b].flatMap((side) => side.metrics.drawn.map(({ name }) => name));
  return { found, before: a, after: b, rowOf, metrics: [...new Set(drawn)] };
}

function bytesOf(text: string): ArrayBuffer {
  const bytes = fromBase64(text);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
}

type Shared = Pick<Tables, "strings" | "frames"> & { frame: Uint32Array };

/** Frames and texts of the union, of before where it has the row; what was renamed has both names. */
function unionFrames(
  profiles: [Profile, Profile],
  rowOf: Diff["rowOf"],
  size: number,
  renamed: Map<NodeRow, string>,
): Shared {
  const from: [side: number, frame: number][] = Array.from({ length: size });
  for (const side of [1, 0]) rowOf[side].forEach((row, node) => (from[row] = [side, profiles[side].frame[node]]));
  const texts = new Map<string, number>([["", 0]]);
  const intern = (text: string) => texts.get(text) ?? (texts.set(text, texts.size), texts.size - 1);
  const known = new Map<string, number>();
  const rows: { profile: Profile; frame: number; name: string }[] = [];
  const frame = Uint32Array.from(from, ([side, own], row) => {
    const profile = profiles[side];
    const [was, is] = [profile.frameText("name", own), renamed.get(row)];
    const name = is !== undefined && is !== was ? `${was} → ${is}` : was;
    const key = `${side} ${own} ${name}`;
    let made = known.get(key);
    if (made === undefined) known.set(key, (made = rows.push({ profile, frame: own, name }) - 1));
    return made;
  });
  const text = (column: "file" | "module" | "detail") =>
    Uint32Array.from(rows, (one) => intern(one.profile.frameText(column, one.frame)));
  const number = (column: "kind" | "line" | "first_line" | "address") =>
    rows.map((one) => one.profile.tables.frames[column][one.frame]);
  const frames = {
    kind: Uint8Array.from(number("kind")),
    name: Uint32Array.from(rows, (one) => intern(one.name)),
    file: text("file"),
    line: Int32Array.from(number("line")),
    first_line: Int32Array.from(number("first_line")),
    module: text("module"),
    address: Float64Array.from(number("address")),
    detail: text("detail"),
  };
  return { frame, frames, strings: stringTable([...texts.keys()]) };
}

function stringTable(texts: string[]): Tables["strings"] {
  const encoder = new TextEncoder();
  const parts = texts.map((text) => encoder.encode(text));
  const offsets = new Float64Array(parts.length + 1);
  parts.forEach((part, i) => (offsets[i + 1] = offsets[i] + part.length));
  const bytes = new Uint8Array(offsets[parts.length]);
  parts.forEach((part, i) => bytes.set(part, offsets[i]));
  return { bytes, offsets };
}

/** What belongs to one of the profiles alone has no rows. */
function emptyTables(profile: Profile): Tables {
  const emptied = Object.entries(profile.tables).map(([name, columns]) => [
    name,
    Object.fromEntries(Object.entries(columns).map(([column, values]) => [column, (values as Uint8Array).slice(0, 0)])),
  ]);
  return Object.fromEntries(emptied) as Tables;
}

/** Rows of the table `metrics`; calls are how often `call_time` was measured. */
function metricRows(columns: (readonly [string, Float64Array])[]): Tables["metrics"] {
  const rows = columns.flatMap(([name, values]) => {
    const [metric, counted] = [
      MetricKindNames.indexOf((name === "calls" ? "call_time" : name) as "time"),
      name === "calls",
    ];
    const made: [number, number, number, number][] = [];
    if (metric < 0) return made; // of a newer release
    values.forEach((value, node) => {
      if (value) made.push([node, metric, counted ? 0 : value, counted ? value : 1]);
    });
    return made;
  });
  const zeros = new Float64Array(rows.length);
  return {
    node: Uint32Array.from(rows, ([node]) => node),
    metric: Uint16Array.from(rows, ([, metric]) => metric),
    device: new Int16Array(rows.length),
    stream: new Int32Array(rows.length),
    sum: Float64Array.from(rows, ([, , sum]) => sum),
    count: Float64Array.from(rows, ([, , , count]) => count),
    min: zeros,
    max: zeros,
    sum_squares: zeros,
  } as unknown as Tables["metrics"];
}
