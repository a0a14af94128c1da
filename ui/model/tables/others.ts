// Kernels, source lines, collectives, memory and ranks as rows.

import type { Profile } from "../profile";
import type { KernelRow } from "../report";
import { scopesOf } from "../scopes";
import { eachMeasurement, Spread, sums } from "./rows";

/** Device work by name and kind, the most expensive first. `only`: of these kinds. */
export function kernels(profile: Profile, only?: string): KernelRow[] {
  const { sum, count, min, max, sum_squares: squares } = profile.tables.metrics;
  const { name, kind } = profile.tables.frames;
  const groups = new Map<number, Spread>();
  eachMeasurement(profile, "gpu_time", (node, row) => {
    const frame = profile.frame[node];
    if (only && profile.kindOfFrame(frame) !== only) return;
    const key = name[frame] * 256 + kind[frame];
    let spread = groups.get(key);
    if (!spread) groups.set(key, (spread = new Spread()));
    spread.self += sum[row];
    spread.add(count[row], sum[row], min[row], max[row], squares[row]);
  });
  const frameOf = new Map<number, number>();
  for (let frame = 0; frame < name.length; frame++) frameOf.set(name[frame] * 256 + kind[frame], frame);
  return [...groups]
    .map(([key, spread]) => ({
      name: profile.text(Math.floor(key / 256)),
      kind: profile.kindOfFrame(frameOf.get(key) as number),
      count: spread.count,
      gpu_time_ns: spread.distribution(),
    }))
    .sort((a, b) => b.gpu_time_ns.sum - a.gpu_time_ns.sum || (a.name < b.name ? -1 : 1));
}

export interface LineRow {
  file: string;
  line: number;
  function: string;
  time_ns: number;
  gpu_time_ns: number;
  alloc_bytes: number;
  peak_bytes: number;
  calls: number;
  wait_ns: number;
}

/** The user's lines: everything is booked on the innermost line of the user's own code above it. */
export function lines(profile: Profile): LineRow[] {
  const { user } = scopesOf(profile);
  const { frames } = profile.tables;
  const columns = {
    time_ns: sums(profile, "time"),
    gpu_time_ns: sums(profile, "gpu_time"),
    alloc_bytes: sums(profile, "alloc_bytes"),
    peak_bytes: profile.metrics.values("peak_live_bytes").own,
    calls: profile.metrics.values("calls").own,
    wait_ns: sums(profile, "wait_time"),
  };
  const sync = sums(profile, "sync_time");
  const rows = new Map<string, LineRow>();
  for (let node = 0; node < profile.size; node++) {
    if (user[node] < 0) continue;
    const frame = profile.frame[user[node]];
    const key = `${frames.file[frame]}:${frames.line[frame]}:${frames.name[frame]}`;
    let row = rows.get(key);
    if (!row) {
      const name = profile.frameText("name", frame);
      row = {
        file: profile.frameText("file", frame), line: profile.line(frame), function: name === "<module>" ? "" : name,
        time_ns: 0, gpu_time_ns: 0, alloc_bytes: 0, peak_bytes: 0, calls: 0, wait_ns: 0,
      }; // prettier-ignore
      rows.set(key, row);
    }
    for (const name of Object.keys(columns) as (keyof typeof columns)[]) row[name] += columns[name][node];
    row.wait_ns += sync[node];
  }
  return [...rows.values()]
    .filter((row) => row.time_ns || row.gpu_time_ns || row.alloc_bytes || row.peak_bytes || row.wait_ns)
    .sort((a, b) => b.gpu_time_ns - a.gpu_time_ns || b.time_ns - a.time_ns);
}

export interface RankRow {
  name: string;
  pid: number;
  rank: number;
  wall_ns: number;
  operators_ns: number;
  data_ns: number;
  cpu_ns: number;
  gpu_time_ns: number;
  threads: number;
  complete: boolean;
}

/** One row per process; times of its threads added up, the wall time its longest. */
export function ranks(profile: Profile): RankRow[] {
  const { processes, threads } = profile.tables;
  const gpu = profile.metrics.values("gpu_time").whole;
  const made: RankRow[] = [];
  for (let row = 0; row < processes.pid.length; row++)
    made.push({
      name: profile.text(processes.name[row]),
      pid: processes.pid[row],
      rank: processes.rank[row],
      wall_ns: Math.max(0, processes.end_ns[row] - processes.start_ns[row]),
      operators_ns: 0,
      data_ns: 0,
      cpu_ns: 0,
      gpu_time_ns: gpu[processes.node[row]],
      threads: 0,
      complete: processes.complete[row] === 1,
    });
  for (let thread = 0; thread < threads.tid.length; thread++) {
    const row = made[threads.process[thread]];
    row.threads += 1;
    row.operators_ns += threads.operator_ns[thread];
    row.data_ns += threads.data_ns[thread];
    row.cpu_ns += threads.cpu_ns[thread];
    row.wall_ns = Math.max(row.wall_ns, threads.wall_ns[thread]);
  }
  return made;
}
