// The report as Python makes it (docs/json-report.md), with the tables of the page: what is shown of a profile as a whole.
// Where no Python is at hand it is the one that the file keeps (stored.ts).

import type { Ranks } from "./ranks";

export interface Place {
  file: string;
  short: string;
  line: number;
  function: string;
}

/** What an allocator held at the end; of `name` empty all of it. */
export interface Pool {
  name: string;
  reserved_bytes: number;
  in_use_bytes: number;
  free_bytes: number;
  largest_free_bytes: number | null;
  segments: number | null;
}

export interface Allocator {
  device: string;
  name: string;
  pools: Pool[];
}

export interface HotPath {
  place: Place | null;
  module: string;
  module_class: string;
  modules: number;
  phase: string;
  operator: string;
  calls: number;
  paths: number;
  /** Lines that call the function of the line. */
  callers?: number;
  values: Record<string, number>;
  node: number;
}

/** What the engines of a server did, in words. */
export interface Serving {
  engine: string;
  version: string;
  facts: string[];
  tables: { heads: string[]; rows: string[][]; note: string }[];
}

export interface Distribution {
  sum: number;
  self: number;
  min: number;
  max: number;
  mean: number;
  std: number;
}

export interface TimeSplit {
  process: string;
  thread: string;
  main: boolean;
  wall_ns: number;
  operators_ns: number;
  python_ns: number;
  data_ns: number;
  communication_ns: number;
  compile_ns: number;
  device_wait_ns: number;
  no_work_ns: number;
  other_wait_ns: number;
  idle_ns: number;
  /** Of `device_wait_ns`, how long the thread spun on a core; null where that was not measured. */
  device_wait_running_ns: number | null;
  estimated: string[];
  places: (Place & { part: string; time_ns: number })[];
}

export interface OperatorRow {
  name: string;
  count: number;
  time_ns: Distribution;
  gpu_time_ns: number;
  alloc_bytes: number;
}

export interface ModuleRow {
  name: string;
  class_name: string;
  time_ns: number;
  self_ns: number;
  forward_ns: number;
  backward_ns: number;
  gpu_time_ns: number;
  alloc_bytes: number;
  modules: number;
}

/** Scratch memory that the driver took for launches of one kernel while they waited. */
export interface ScratchRow {
  name: string;
  thread_bytes: number;
  taken: number;
  /** null where the vendor's library does not say. */
  taken_bytes: number | null;
  waited_ns: number;
  returned: number;
}

/** Copies from one device of a process to another. */
export interface LinkRow {
  source: number;
  target: number;
  link: string;
  copies: number;
  bytes: number;
  ns: number;
  /** What the link can do; null where it is not told. */
  link_bytes_s: number | null;
}

export interface KernelRow {
  name: string;
  kind: string;
  count: number;
  gpu_time_ns: Distribution;
}

export interface Busy {
  busy_ns: number;
  idle_ns: number;
  communication_ns: number;
  communication_hidden_ns: number;
}

export interface DeviceRow {
  process: string;
  name: string;
  work_ns: number;
  kernels_ns: number;
  copies_ns: number;
  idle_ns: number;
  launches: number;
  copy_bytes: number;
  busy: Busy | null;
}

export interface Loss {
  kind: string;
  count: number;
  meaning: string;
  detail: string;
  process: string;
}

/** Memory of one run of a compiled program, as its compiler has planned it. */
export interface CompiledProgram {
  name: string;
  place: Place | null;
  node: number;
  arguments_bytes: number;
  results_bytes: number;
  temporaries_bytes: number;
  /** Whether the buffers are those that are alive when the temporary memory is fullest; else the largest. */
  at_peak: boolean;
  buffers: { bytes: number; operation: string; place: Place | null; node: number | null }[];
}

/** Why the step is slow (docs/verdict.md). */
export interface Verdict {
  kind: string;
  sentence: string;
  place: { file: string; line: number; short: string } | null;
  because: string[];
  trust: string;
  account: { of: string; wall_ns: number; steps: number; notes: string[]; parts: AccountPart[] } | null;
  ask: string;
}

export interface AccountPart {
  key: string;
  label: string;
  lane: string;
  group: string;
  ns: number;
  share: number;
  known: string;
  sure_ns: number;
}

/** Part of a bar of one step; `node` is -1 where no node of the tree stands for it. */
export interface StepPart {
  key: string;
  label: string;
  ns: number;
  share: number;
  group: "work" | "wait" | "idle" | "unexplained";
  known: string;
  node: number;
  lines: string[];
}

export interface StepBar {
  name: string;
  parts: StepPart[];
  scaled: boolean;
}

export interface RankBar {
  rank: number;
  host: string;
  work_ns: number;
  wait_ns: number;
  late: boolean;
  node: number;
}

export interface Help {
  do: string;
  place: Place | null;
  gain_ns: number;
  low_ns: number;
  high_ns: number;
  known: string;
  change: string;
  rule: string;
  scenario: string;
  command: string;
  remedy: string;
  evidence: string[];
  nodes: number[];
}

export interface WhereLine {
  place: Place | null;
  name: string;
  what: string;
  phase: string;
  forward_ns: number;
  backward_ns: number;
  other_ns: number;
  ns: number;
  share: number;
  node: number;
}

export interface KernelOfStep {
  name: string;
  words: string;
  ns: number;
  share: number;
  calls: number;
  node: number;
}

/** What the start page shows beside the verdict's sentence; times are of one step, or of the run (`of`). */
export interface Start {
  of: string;
  wall_ns: number;
  steps: number;
  title: string;
  min_ns: number;
  max_ns: number;
  walls_ns: number[];
  text: string;
  node: number;
  bars: StepBar[];
  ranks: RankBar[];
  help: Help[];
  where: WhereLine[];
  where_of: string;
  no_lines: string;
  kernels: KernelOfStep[];
  device: string;
  rules_silent: number;
}

/** A line of the user's with all that is booked on it. */
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

export interface ProcessRow {
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

/** `layers`: modules by themselves; in `modules` those that differ in layer numbers alone are one. */
export interface Tables {
  operators: OperatorRow[];
  modules: ModuleRow[];
  layers: ModuleRow[];
  kernels: KernelRow[];
  lines: LineRow[];
  processes: ProcessRow[];
  /** How many rows each has, shown or not. */
  of: Record<string, number>;
}

export interface Report {
  meta: {
    program: string;
    started_at: string;
    wall_ns: number;
    host: string;
    python: string;
    frameworks: string[];
    asked: string;
    processes: number;
    threads: number;
    complete: boolean;
    file: string;
    leadline: string;
  };
  /** null where no engine serves; absent in reports of older releases. */
  serving?: Serving | null;
  totals: Record<string, { unit: string; sum: number; count: number }>;
  time_split: TimeSplit[];
  path_metric: string;
  focus: { pattern: string; share: number; nodes: number } | null;
  paths: HotPath[];
  /** Of all operators, shown or not. */
  operator_calls: number;
  phases: { name: string; operators: number; time_ns: number; gpu_time_ns: number }[];
  memory: {
    allocated_bytes: number;
    freed_bytes: number;
    allocations: number;
    frees: number;
    peaks: { device: string; peak_bytes: number; paths: HotPath[] }[];
    /** Absent in reports of before. */
    allocators?: Allocator[];
  } | null;
  gpu: {
    work_ns: number;
    sync_ns: number;
    devices: DeviceRow[];
    kernels: KernelRow[];
    /** Absent in reports of before. */
    scratch?: ScratchRow[];
    links?: LinkRow[];
  } | null;
  /** Absent in reports of before, and in those that the page makes. */
  programs?: CompiledProgram[];
  losses: Loss[];
  cost: { callbacks_ns: number; events: number; held_bytes: number; percent: number | null; measured: boolean };
  next: string[];
  tables: Tables;
  /** False where neither Python nor the file says anything. */
  known?: boolean;
  /** Of a merged job. */
  ranks?: Ranks | null;
  verdict?: Verdict | null;
  start?: Start | null;
}

/** Findings of `leadline analyze`, as docs/rules.md has them in JSON. */
export interface Finding {
  rule: string;
  severity: "warning" | "info";
  title: string;
  gain: { low_ns: number; expected_ns: number; high_ns: number; basis: string; per: string; of_ns: number };
  paths: number[];
  lines: { file: string; line: number; function: string; short: string; text: string; context: string }[];
  evidence: string[];
  remedy: string;
  learn_more: string;
  scenario: string;
}

export interface Findings {
  /** What looking came to, where there is no warning: nothing, or why nobody could look. */
  state_text: string;
  steps: number;
  step_ns: number;
  findings: Finding[];
  not_applicable: { rule: string; reason: string }[];
  failed: { rule: string; error: string }[];
  notes: string[];
}
