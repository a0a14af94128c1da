// What was measured, grouped by what somebody chooses: name, class, module, line, phase, thread, device, stream.

import { baseName, foldedName, operatorName } from "./frames";
import type { NodeRow, Profile } from "./profile";
import { MetricKindNames } from "./schema.generated";
import { nameOf, scopesOf, type Scopes } from "./scopes";
import { processName } from "./timeline";

export const DIMENSIONS = {
  name: "name",
  operator: "operator",
  module: "module",
  class: "module class",
  line: "line",
  phase: "phase",
  kind: "kind",
  process: "process or rank",
  thread: "thread",
  device: "device",
  stream: "stream",
} as const;
export type Dimension = keyof typeof DIMENSIONS;

export interface PivotRow {
  keys: string[];
  /** Of operators and regions, and how often devices did something. */
  calls: number;
  device_count: number;
  time_ns: number;
  gpu_ns: number;
  alloc_bytes: number;
  /** The node of it with most. */
  node: NodeRow;
}

const COLUMNS = { time: "time_ns", gpu_time: "gpu_ns", alloc_bytes: "alloc_bytes" } as const;

/** Groups with time, device time or memory of their own; nothing is counted twice. */
export function pivot(profile: Profile, by: readonly Dimension[]): PivotRow[] {
  const { node, metric, count, sum, device, stream } = profile.tables.metrics;
  const scopes = scopesOf(profile);
  const call = MetricKindNames.indexOf("call_time");
  const wanted = new Map(
    Object.entries(COLUMNS).map(([name, column]) => [MetricKindNames.indexOf(name as "time"), column]),
  );
  const texts = by.map((dimension) => cached((row: NodeRow) => textOf(profile, scopes, dimension, row)));
  const rows = new Map<string, PivotRow & { most: number }>();
  for (let i = 0; i < node.length; i++) {
    const column = wanted.get(metric[i]);
    if ((!column && metric[i] !== call) || !(count[i] > 0)) continue;
    const keys = by.map((dimension, at) => {
      if (dimension === "stream") return stream[i] >= 0 ? `stream ${stream[i]}` : "";
      if (dimension === "device") return device[i] >= 0 ? profile.text(profile.tables.devices.name[device[i]]) : "CPU";
      return texts[at](node[i]);
    });
    const key = keys.join("\n");
    let row = rows.get(key);
    if (!row) {
      row = { keys, calls: 0, device_count: 0, time_ns: 0, gpu_ns: 0, alloc_bytes: 0, node: node[i], most: -1 };
      rows.set(key, row);
    }
    if (!column) row.calls += count[i];
    else {
      row[column] += Math.max(0, sum[i]);
      if (column === "gpu_ns") row.device_count += count[i];
      if (column !== "alloc_bytes" && sum[i] > row.most) [row.most, row.node] = [sum[i], node[i]];
    }
  }
  return [...rows.values()].filter((row) => row.time_ns || row.gpu_ns || row.alloc_bytes);
}

function textOf(profile: Profile, scopes: Scopes, dimension: Dimension, row: NodeRow): string {
  const { user, module, phase, inner, thread, process } = scopes;
  const at = (place: NodeRow) => (place >= 0 ? profile.frame[place] : -1);
  if (dimension === "name") return operatorName(profile.name(row));
  if (dimension === "operator") return operatorName(nameOf(profile, inner[row]));
  if (dimension === "kind") return profile.kind(row);
  if (dimension === "module") return foldedName(nameOf(profile, module[row]));
  if (dimension === "class") return module[row] >= 0 ? profile.frameText("module", at(module[row])) : "";
  if (dimension === "phase") return nameOf(profile, phase[row]);
  if (dimension === "thread") return nameOf(profile, thread[row]);
  if (dimension === "process") {
    const place = profile.tables.processes.node.indexOf(process[row]);
    return place >= 0 ? processName(profile, place) : "";
  }
  if (user[row] < 0) return "";
  return `${baseName(profile.frameText("file", at(user[row])))}:${profile.line(at(user[row]))}`;
}

function cached(make: (row: NodeRow) => string): (row: NodeRow) => string {
  const known = new Map<NodeRow, string>();
  return (row) => {
    let text = known.get(row);
    if (text === undefined) known.set(row, (text = make(row)));
    return text;
  };
}
