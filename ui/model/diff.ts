// Two profiles on one tree, so that every path has a value before and after. Paths are aligned by names (align.ts).

import { align, type Aligned } from "./align";
import type { NodeRow, Profile } from "./profile";
import { Profile as Made } from "./profile";
import { MetricKindNames, type Tables } from "./schema.generated";
import { scopesOf } from "./scopes";

export interface Diff {
  /** The same rows; their metrics are those before and after, divided by steps where both are known. */
  before: Profile;
  after: Profile;
  /** Of the profiles that are compared, before and after, the row of every node. */
  rowOf: [Int32Array, Int32Array];
  /** Functions and modules that have another name after, each name once. */
  renamed: { row: NodeRow; from: string; to: string }[];
  /** Calls of the optimizer; 0 where a profile has none. */
  steps: [number, number];
  perStep: boolean;
  /** Metrics that both have. */
  metrics: string[];
  /** What hinders comparing, a sentence each. */
  hindrances: string[];
}

export function diffOf(before: Profile, after: Profile): Diff {
  const aligned = align(before, after);
  const steps: [number, number] = [stepsOf(before), stepsOf(after)];
  const perStep = steps[0] > 0 && steps[1] > 0;
  const shared = unionFrames([before, after], aligned);
  const names = before.metrics.drawn.map((one) => one.name);
  const metrics = after.metrics.drawn.map((one) => one.name).filter((name) => names.includes(name));
  const [a, b] = [before, after].map((profile, i) => {
    const scale = perStep ? 1 / steps[i] : 1;
    return new Made(sideTables(profile, aligned.parent, shared, aligned.rowOf[i], scale), profile.meta);
  });
  const renamed = renames([before, after], aligned);
  const { rowOf } = aligned;
  return { before: a, after: b, rowOf, renamed, steps, perStep, metrics, hindrances: hindrances(before, after) };
}

function renames([before, after]: [Profile, Profile], { renamed, frameOf }: Aligned): Diff["renamed"] {
  const found = new Map<string, Diff["renamed"][number]>();
  for (const [row, frame] of renamed) {
    const [from, to] = [before.frameText("name", frameOf[row][1]), after.frameText("name", frame)];
    if (from !== to && !found.has(`${from} ${to}`)) found.set(`${from} ${to}`, { row, from, to });
  }
  return [...found.values()];
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

/** Frames and texts of the union, taken from the profile that a row was made for; what was renamed has both names. */
function unionFrames(profiles: [Profile, Profile], { frameOf, renamed }: Aligned): Shared {
  const texts = new Map<string, number>([["", 0]]);
  const intern = (text: string) => texts.get(text) ?? (texts.set(text, texts.size), texts.size - 1);
  const known = new Map<string, number>();
  const rows: { profile: Profile; frame: number; name: string }[] = [];
  const frame = Uint32Array.from(frameOf, ([side, own], row) => {
    const other = renamed.get(row) ?? -1;
    const key = `${side} ${own} ${other}`;
    let made = known.get(key);
    if (made === undefined) {
      const profile = profiles[side];
      const [from, to] = [profile.frameText("name", own), other < 0 ? "" : profiles[1].frameText("name", other)];
      known.set(
        key,
        (made = rows.push({ profile, frame: own, name: to && to !== from ? `${from} → ${to}` : from }) - 1),
      );
    }
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

function sideTables(profile: Profile, parent: Int32Array, shared: Shared, rowOf: Int32Array, scale: number): Tables {
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
    nodes: { parent, frame: shared.frame },
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
  const text = (value: unknown): string =>
    typeof value === "string"
      ? value
      : Array.isArray(value)
        ? value.map(text).join(" ")
        : value === undefined || value === null
          ? ""
          : JSON.stringify(value);
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
