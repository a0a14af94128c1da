// What each line of a source file cost, and what ran on it.

import { operatorName } from "./frames";
import type { Profile } from "./profile";
import { nameOf, scopesOf } from "./scopes";
import type { LineRow } from "./report";

export interface FileHeat {
  file: string;
  /** By line number; several functions on one line are added up. */
  lines: Map<number, LineRow>;
  time_ns: number;
  gpu_time_ns: number;
}

/** Files with measured lines, the most expensive first. */
export function heatOfFiles(rows: LineRow[]): FileHeat[] {
  const files = new Map<string, FileHeat>();
  for (const row of rows) {
    let file = files.get(row.file);
    if (!file) files.set(row.file, (file = { file: row.file, lines: new Map(), time_ns: 0, gpu_time_ns: 0 }));
    const old = file.lines.get(row.line);
    file.lines.set(row.line, old ? added(old, row) : row);
    file.time_ns += row.time_ns;
    file.gpu_time_ns += row.gpu_time_ns;
  }
  return [...files.values()].sort((a, b) => b.gpu_time_ns - a.gpu_time_ns || b.time_ns - a.time_ns);
}

function added(a: LineRow, b: LineRow): LineRow {
  return {
    ...a,
    time_ns: a.time_ns + b.time_ns,
    gpu_time_ns: a.gpu_time_ns + b.gpu_time_ns,
    alloc_bytes: a.alloc_bytes + b.alloc_bytes,
    peak_bytes: a.peak_bytes + b.peak_bytes,
    calls: a.calls + b.calls,
    wait_ns: a.wait_ns + b.wait_ns,
  };
}

export interface OnLine {
  name: string;
  phase: string;
  time_ns: number;
  gpu_time_ns: number;
  calls: number;
  /** The node of it with most time. */
  node: number;
}

/** Of each line of a file what its backward took, by the metric that lines are ordered by. */
export function backwardOfFile(profile: Profile, file: string): Map<number, number> {
  const { user, phase } = scopesOf(profile);
  const { own } = profile.metrics.values(profile.metrics.main === "gpu_time" ? "gpu_time" : "time");
  const lines = new Map<number, number>();
  for (let node = 0; node < profile.size; node++) {
    if (!(own[node] > 0) || user[node] < 0 || nameOf(profile, phase[node]) !== "backward") continue;
    const frame = profile.frame[user[node]];
    if (profile.frameText("file", frame) !== file) continue;
    lines.set(profile.line(frame), (lines.get(profile.line(frame)) ?? 0) + own[node]);
  }
  return lines;
}

/** What ran on a line: its outermost operators by name and phase, the most expensive first. */
export function operatorsOnLine(profile: Profile, file: string, line: number): OnLine[] {
  const { user, outer, phase } = scopesOf(profile);
  const time = profile.metrics.values("time").own;
  const gpu = profile.metrics.values("gpu_time").own;
  const calls = profile.metrics.values("calls").own;
  const there = new Map<number, boolean>();
  const isThere = (frame: number) => {
    let is = there.get(frame);
    if (is === undefined)
      there.set(frame, (is = profile.line(frame) === line && profile.frameText("file", frame) === file));
    return is;
  };
  const rows = new Map<string, OnLine & { most: number }>();
  for (let node = 0; node < profile.size; node++) {
    if (user[node] < 0 || !isThere(profile.frame[user[node]]) || !(time[node] || gpu[node])) continue;
    const name = operatorName(nameOf(profile, outer[node])) || profile.name(node);
    const key = `${name} ${nameOf(profile, phase[node])}`;
    let row = rows.get(key);
    if (!row) {
      row = { name, phase: nameOf(profile, phase[node]), time_ns: 0, gpu_time_ns: 0, calls: 0, node, most: 0 };
      rows.set(key, row);
    }
    row.time_ns += time[node];
    row.gpu_time_ns += gpu[node];
    if (outer[node] === node) row.calls += calls[node];
    const cost = time[node] + gpu[node];
    if (cost > row.most) {
      row.most = cost;
      row.node = outer[node] >= 0 ? outer[node] : node;
    }
  }
  return [...rows.values()].sort((a, b) => b.gpu_time_ns - a.gpu_time_ns || b.time_ns - a.time_ns);
}
