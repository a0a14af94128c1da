// A report of the profile itself, for places without Python: what ran, a rough split of each thread's time, the hottest
// paths, memory, losses. Where Python made a report, that one is shown instead.

import { shortNames } from "./frames";
import { hotPaths } from "./hotpaths";
import type { Meta, Profile } from "./profile";
import type { HotPath, Loss, Report, TimeSplit } from "./report";
import { isObject } from "./reader";
import { LossKindDocs, LossKindNames, MetricInfo, MetricKindNames } from "./schema.generated";

const MOST_PATHS = 200;

export function summarize(profile: Profile, file: string): Report {
  const { tables, meta } = profile;
  const metric = profile.metrics.main;
  const wall = wallTime(profile);
  let paths: HotPath[] | null = null; // ranked when somebody looks: a large tree takes a moment
  let held: Report["memory"] | undefined;
  return {
    meta: {
      program: programOf(profile),
      started_at: startedAt(meta.started_at_ns),
      wall_ns: wall,
      host: hostOf(meta),
      python: text(meta.program.python),
      frameworks: Object.entries(meta.available)
        .filter(([, about]) => isObject(about) && text(about.version))
        .map(([name, about]) => `${name} ${text((about as Record<string, unknown>).version)}`),
      asked: Object.entries(meta.asked)
        .filter(([, value]) => value === true)
        .map(([name]) => name)
        .join(", "),
      processes: tables.processes.pid.length,
      threads: tables.threads.tid.length,
      complete:
        typeof meta.complete === "boolean" ? meta.complete : tables.processes.complete.every((one) => one === 1),
      file,
      leadline: text(meta.leadline),
    },
    totals: totals(profile),
    time_split: splits(profile),
    path_metric: metric,
    focus: null,
    get paths() {
      return (paths ??= hotPaths(profile, metric, MOST_PATHS));
    },
    operators: [],
    modules: [],
    phases: [],
    get memory() {
      return held === undefined ? (held = memory(profile)) : held;
    },
    gpu: null,
    losses: losses(profile),
    cost: cost(meta, wall),
    hidden: { paths: 0, operators: 0, modules: 0, kernels: 0 },
    next: [],
  };
}

/** File names as they are shown, relative to where the program ran. */
export function shownFiles(profile: Profile): Map<string, string> {
  const files = new Set<number>(profile.tables.frames.file);
  return shortNames(
    [...files].map((row) => profile.text(row)),
    text(profile.meta.program.cwd),
  );
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function whole(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? Math.trunc(value) : 0;
}

export function programOf(profile: Profile): string {
  const { argv } = profile.meta.program;
  const words = Array.isArray(argv) ? argv.filter((word): word is string => typeof word === "string") : [];
  const said = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`));
  const { name } = profile.tables.processes;
  return said.join(" ") || (name.length ? profile.text(name[0]) : "") || "unknown program";
}

function startedAt(ns: unknown): string {
  const ms = whole(ns) / 1e6;
  if (ms <= 0 || ms > 8.64e15) return "";
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

function hostOf(meta: Meta): string {
  const { hostname, system, machine, cpus } = meta.host;
  const kernel = `${text(system).split("-")[0]} ${text(machine)}`.trim();
  return [text(hostname), kernel, whole(cpus) > 0 ? `${whole(cpus)} CPUs` : ""].filter(Boolean).join(", ");
}

function wallTime(profile: Profile): number {
  const stated = whole(profile.meta.wall_ns);
  if (stated > 0) return stated;
  const { start_ns: starts, end_ns: ends } = profile.tables.processes;
  const from = Math.min(...starts.filter((one) => one > 0));
  const to = Math.max(...ends.filter((one) => one > 0));
  const span = Number.isFinite(to - from) ? to - from : 0;
  return profile.tables.threads.wall_ns.reduce((most, one) => Math.max(most, one), span);
}

function totals(profile: Profile): Report["totals"] {
  const { metric, sum, count } = profile.tables.metrics;
  const made: Report["totals"] = {};
  for (let i = 0; i < metric.length; i++) {
    const name = MetricKindNames[metric[i]];
    if (!name || !count[i]) continue;
    const total = (made[name] ??= { unit: MetricInfo[name].unit, sum: 0, count: 0 });
    total.sum += sum[i];
    total.count += count[i];
  }
  return made;
}

/** Operators and data loading are measured; Python and idle are what is left, by the thread's CPU time. */
function splits(profile: Profile): TimeSplit[] {
  const { threads, processes } = profile.tables;
  const longest = Math.max(1, ...threads.wall_ns);
  const seen = new Set<number>();
  const made: TimeSplit[] = [];
  const several = processes.pid.length > 1;
  for (let row = 0; row < threads.tid.length; row++) {
    const main = !seen.has(threads.process[row]);
    seen.add(threads.process[row]);
    const wall_ns = threads.wall_ns[row];
    if (wall_ns <= 0 || (!main && threads.operator_ns[row] + threads.data_ns[row] < 0.01 * longest)) continue;
    const operators_ns = Math.min(Math.max(threads.operator_ns[row], 0), wall_ns);
    const data_ns = Math.min(Math.max(threads.data_ns[row], 0), wall_ns - operators_ns);
    const room = wall_ns - operators_ns - data_ns;
    const python_ns = Math.min(room, Math.max(0, threads.cpu_ns[row] - operators_ns - data_ns));
    const { rank, pid } = processes;
    const at = threads.process[row];
    made.push({
      process: several ? (rank[at] >= 0 ? `rank ${rank[at]}` : `process ${pid[at]}`) : "",
      thread: profile.text(threads.name[row]),
      main,
      wall_ns,
      operators_ns,
      python_ns,
      data_ns,
      communication_ns: 0,
      compile_ns: 0,
      device_wait_ns: 0,
      other_wait_ns: 0,
      idle_ns: room - python_ns,
      device_wait_running_ns: null,
      estimated: ["python", "idle"],
      places: [],
    });
  }
  return made.slice(0, 64);
}

function memory(profile: Profile): Report["memory"] {
  const sums = totals(profile);
  if (!sums.alloc_bytes) return null;
  const { metric, device, count, sum, node } = profile.tables.metrics;
  const peak = MetricKindNames.indexOf("peak_live_bytes");
  const devices = new Map<number, number>();
  for (let i = 0; i < node.length; i++)
    if (metric[i] === peak && count[i] > 0) devices.set(device[i], (devices.get(device[i]) ?? 0) + sum[i]);
  const one = profile.tables.processes.pid.length <= 1 && devices.size === 1; // moments of several are never added up
  return {
    allocated_bytes: sums.alloc_bytes.sum,
    allocations: sums.alloc_bytes.count,
    freed_bytes: sums.free_bytes?.sum ?? 0,
    frees: sums.free_bytes?.count ?? 0,
    peaks: one
      ? [...devices].map(([row, bytes]) => ({
          device: row < 0 ? "CPU" : profile.text(profile.tables.devices.name[row]),
          peak_bytes: bytes,
          paths: hotPaths(profile, "peak_live_bytes", 40),
        }))
      : [],
  };
}

function losses(profile: Profile): Loss[] {
  const { kind, count, detail } = profile.tables.losses;
  const made: Loss[] = [];
  for (let i = 0; i < kind.length; i++) {
    const name = LossKindNames[kind[i]];
    const sentence = profile.text(detail[i]);
    if (!count[i] && !sentence) continue;
    made.push({
      kind: name ?? `kind ${kind[i]}`,
      count: count[i],
      meaning: name ? LossKindDocs[name] : "a loss that a newer release of leadline knows",
      detail: sentence,
      process: "",
    });
  }
  return made;
}

function cost(meta: Meta, wall: number): Report["cost"] {
  const { callbacks_ns, events, held_bytes, percent } = meta.cost;
  const stated = typeof percent === "number" && Number.isFinite(percent) ? percent : null;
  const callbacks = whole(callbacks_ns);
  return {
    callbacks_ns: callbacks,
    events: whole(events),
    held_bytes: whole(held_bytes),
    percent: stated ?? (callbacks && wall ? (100 * callbacks) / wall : null),
  };
}
