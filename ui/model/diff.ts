// Two profiles on one tree, so that every path has a value before and after. Paths are aligned by names: lines, process ids
// and folders are no part of them, so moved code stays where it is (as python/leadline/compare/align.py, which also knows
// renamed functions).

import { baseName } from "./frames";
import type { NodeRow, Profile } from "./profile";
import { Profile as Made } from "./profile";
import { MetricKindNames, type Tables } from "./schema.generated";
import { scopesOf } from "./scopes";

export interface Diff {
  /** The same rows; their metrics are those before and after, divided by steps where both are known. */
  before: Profile;
  after: Profile;
  /** Calls of the optimizer; 0 where a profile has none. */
  steps: [number, number];
  perStep: boolean;
  /** Metrics that both have. */
  metrics: string[];
  /** What hinders comparing, a sentence each. */
  hindrances: string[];
}

export function diffOf(before: Profile, after: Profile): Diff {
  const keys = new Map<string, number>();
  const sides = [before, after].map((profile) => ({ profile, keyOf: frameKeys(profile, keys) }));
  const parent: number[] = [-1];
  const frameOf: [Profile, number][] = [[before, before.frame[0]]];
  const children = new Map<number, NodeRow>();
  const rowsOf = sides.map(({ profile, keyOf }) => {
    const rows = new Int32Array(profile.size);
    for (let row = 1; row < profile.size; row++) {
      const above = rows[profile.parent[row]];
      const key = above * keys.size + keyOf[profile.frame[row]];
      let made = children.get(key);
      if (made === undefined) {
        made = parent.length;
        children.set(key, made);
        parent.push(above);
        frameOf.push([profile, profile.frame[row]]);
      }
      rows[row] = made;
    }
    return rows;
  });
  const steps: [number, number] = [stepsOf(before), stepsOf(after)];
  const perStep = steps[0] > 0 && steps[1] > 0;
  const shared = unionFrames(frameOf);
  const names = before.metrics.drawn.map((one) => one.name);
  const metrics = after.metrics.drawn.map((one) => one.name).filter((name) => names.includes(name));
  const [a, b] = sides.map(({ profile }, i) => {
    const scale = perStep ? 1 / steps[i] : 1;
    return new Made(sideTables(profile, parent, shared, rowsOf[i], scale), profile.meta);
  });
  return { before: a, after: b, steps, perStep, metrics, hindrances: hindrances(before, after) };
}

const NAMELESS = new Set(["<module>", "<lambda>", "<genexpr>", "<listcomp>"]);

/** A number per frame that frames of the same identity share. */
function frameKeys(profile: Profile, keys: Map<string, number>): Int32Array {
  const { kind, name, file, module } = profile.tables.frames;
  const made = new Int32Array(kind.length);
  let processes = 0;
  for (let frame = 0; frame < made.length; frame++) {
    const what = profile.kindOfFrame(frame);
    const text = profile.text(name[frame]);
    let key = `${what} ${text}`;
    if (what === "process") key = `process ${processes++}`;
    else if (what === "thread") key = `thread ${text.replace(/\d+/g, "")}`;
    else if (NAMELESS.has(text)) key += ` ${baseName(profile.text(file[frame]))}`;
    else if (what === "module") key += ` ${profile.text(module[frame])}`;
    let number = keys.get(key);
    if (number === undefined) keys.set(key, (number = keys.size));
    made[frame] = number;
  }
  return made;
}

/** Calls of the optimizer, of the process that made most of them. */
function stepsOf(profile: Profile): number {
  const { own } = profile.metrics.values("calls");
  const { process } = scopesOf(profile);
  const steps = new Map<number, number>();
  for (let row = 0; row < profile.size; row++) {
    if (!(own[row] > 0)) continue;
    const [kind, name] = [profile.kind(row), profile.name(row)];
    if (kind === "phase" ? name === "optimizer" : kind === "operator" && name.startsWith("Optimizer.step#"))
      steps.set(process[row], Math.max(steps.get(process[row]) ?? 0, own[row]));
  }
  return Math.max(0, ...steps.values());
}

type Shared = Pick<Tables, "strings" | "frames"> & { frame: Uint32Array };

/** Frames and texts of the union, taken from the profile that a row was made for. */
function unionFrames(frameOf: [Profile, number][]): Shared {
  const texts = new Map<string, number>([["", 0]]);
  const intern = (text: string) => texts.get(text) ?? (texts.set(text, texts.size), texts.size - 1);
  const known = new Map<Profile, Map<number, number>>();
  const rows: { profile: Profile; frame: number }[] = [];
  const frame = Uint32Array.from(frameOf, ([profile, row]) => {
    let of = known.get(profile);
    if (!of) known.set(profile, (of = new Map()));
    let made = of.get(row);
    if (made === undefined) of.set(row, (made = rows.push({ profile, frame: row }) - 1));
    return made;
  });
  const text = (column: "name" | "file" | "module" | "detail") =>
    Uint32Array.from(rows, (one) => intern(one.profile.frameText(column, one.frame)));
  const number = (column: "kind" | "line" | "first_line" | "address") =>
    rows.map((one) => one.profile.tables.frames[column][one.frame]);
  const frames = {
    kind: Uint8Array.from(number("kind")),
    name: text("name"),
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
  const parts = texts.map((text) => utf8(text));
  const offsets = new Float64Array(parts.length + 1);
  parts.forEach((part, i) => (offsets[i + 1] = offsets[i] + part.length));
  const bytes = new Uint8Array(offsets[parts.length]);
  parts.forEach((part, i) => bytes.set(part, offsets[i]));
  return { bytes, offsets };
}

function utf8(text: string): number[] {
  return [...unescapeUtf8(text)].map((c) => c.charCodeAt(0));
}

/** Each byte of the text's UTF-8 as one character. */
function unescapeUtf8(text: string): string {
  return encodeURIComponent(text).replace(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
}

function sideTables(profile: Profile, parent: number[], shared: Shared, rowOf: Int32Array, scale: number): Tables {
  const { metrics } = profile.tables;
  const empty = Object.fromEntries(
    (["processes", "threads", "devices", "losses", "events"] as const).map((name) => [
      name,
      Object.fromEntries(
        Object.entries(profile.tables[name]).map(([column, values]) => [column, (values as Uint8Array).slice(0, 0)]),
      ),
    ]),
  );
  const scaled = (values: Float64Array) => values.map((value) => value * scale);
  const moment = MetricKindNames.indexOf("peak_live_bytes");
  return {
    ...(empty as unknown as Tables),
    strings: shared.strings,
    frames: shared.frames,
    nodes: { parent: Int32Array.from(parent), frame: shared.frame },
    metrics: {
      ...metrics,
      node: metrics.node.map((node) => rowOf[node]),
      sum: metrics.sum.map((value, i) => (metrics.metric[i] === moment ? value : value * scale)),
      count: scaled(metrics.count),
    },
  };
}

function hindrances(a: Profile, b: Profile): string[] {
  const said: string[] = [];
  const text = (value: unknown) =>
    typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  const differ = (what: string, x: unknown, y: unknown) => {
    if (text(x) !== text(y)) said.push(`${what}: ${text(x) || "unknown"} before, ${text(y) || "unknown"} after.`);
  };
  differ("Other programs", a.meta.program.argv, b.meta.program.argv);
  differ("Other Pythons", a.meta.program.python, b.meta.program.python);
  differ("Other machines", a.meta.host.hostname, b.meta.host.hostname);
  differ("Other numbers of CPUs", a.meta.host.cpus, b.meta.host.cpus);
  const versions = (profile: Profile) =>
    Object.entries(profile.meta.available)
      .map(([name, about]) => [name, (about as { version?: unknown } | null)?.version])
      .filter(([, version]) => typeof version === "string" && version)
      .map(([name, version]) => `${String(name)} ${String(version)}`)
      .sort()
      .join(", ");
  differ("Other frameworks", versions(a), versions(b));
  const devices = (profile: Profile) =>
    [...profile.tables.devices.name]
      .map((row) => profile.text(row))
      .sort()
      .join(", ");
  differ("Other devices", devices(a), devices(b));
  differ("Other numbers of processes", String(a.tables.processes.pid.length), String(b.tables.processes.pid.length));
  return said;
}

export interface Change {
  node: NodeRow;
  before: number;
  after: number;
  callsBefore: number;
  callsAfter: number;
}

/** Paths by how much of a metric they themselves gained or lost, the largest first. */
export function changes(diff: Diff, metric: string, most = 500): Change[] {
  const before = diff.before.metrics.values(metric).own;
  const after = diff.after.metrics.values(metric).own;
  const calls = [diff.before, diff.after].map((one) => one.metrics.values("calls").own);
  const rows: NodeRow[] = [];
  for (let row = 0; row < before.length; row++) if (before[row] !== after[row]) rows.push(row);
  rows.sort((a, b) => Math.abs(after[b] - before[b]) - Math.abs(after[a] - before[a]) || a - b);
  return rows.slice(0, most).map((node) => ({
    node,
    before: before[node],
    after: after[node],
    callsBefore: calls[0][node],
    callsAfter: calls[1][node],
  }));
}
