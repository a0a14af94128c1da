// Counters over the time of a trace window: live memory, how busy devices and threads were, transfers, work queued.

import type { Profile } from "./profile";
import { EventKindNames } from "./schema.generated";
import { reserved } from "./series_allocators";
import { loaderQueues, memoryByOwner } from "./series_held";
import { processName } from "./timeline";

export interface Chart {
  title: string;
  note: string;
  unit: "bytes" | "ns" | "share" | "bytes/s" | "1";
  /** Nanoseconds from the first event, rising; a value holds until the next. */
  x: number[];
  lines: { name: string; values: number[] }[];
  /** The node at each point, to say who did it; -1 where none did. */
  nodes?: number[];
  /** The lines stand one upon the other. */
  stacked?: boolean;
}

const BINS = 400;
const MOST_POINTS = 4000;
const MOST_LINES = 6;
const DEVICE_KINDS = new Set(["kernel", "copy", "set", "collective"]);

/** Charts with something to show; none without a window. */
export function chartsOf(profile: Profile): Chart[] {
  const { start_ns: starts, duration_ns: durations } = profile.tables.events;
  if (!starts.length) return [];
  const origin = starts[0];
  let end = 1;
  for (let i = 0; i < starts.length; i++) end = Math.max(end, starts[i] - origin + Math.max(0, durations[i]));
  const byOwner = memoryByOwner(profile, origin); // says all that the plain curve says
  const places = byOwner.map(({ title }) => title.replace(/ by (?:phase|line)/, ""));
  const made = [
    ...memory(profile, origin).filter(({ title }) => !places.includes(title)),
    ...byOwner,
    ...reserved(profile, origin),
    ...busy(profile, origin, end),
    ...queues(profile, origin),
    ...loaderQueues(profile, origin, end),
    ...transfers(profile, origin, end),
  ];
  return made;
}

/** Bytes allocated less bytes freed since the window began, a chart per process and device. */
function memory(profile: Profile, origin: number): Chart[] {
  const { kind, bytes, start_ns, node, thread, device } = profile.tables.events;
  const { threads, devices } = profile.tables;
  const wanted = EventKindNames.indexOf("allocate");
  const points = new Map<string, { at: number[]; live: number[]; nodes: number[]; now: number }>();
  for (let i = 0; i < kind.length; i++) {
    if (kind[i] !== wanted || !bytes[i]) continue;
    const process = thread[i] >= 0 ? threads.process[thread[i]] : device[i] >= 0 ? devices.process[device[i]] : 0;
    const where = device[i] >= 0 ? profile.text(devices.name[device[i]]) : "CPU";
    const several = profile.tables.processes.pid.length > 1;
    const key = several ? `${processName(profile, process)}, ${where}` : where;
    let one = points.get(key);
    if (!one) points.set(key, (one = { at: [], live: [], nodes: [], now: 0 }));
    one.now += bytes[i];
    one.at.push(start_ns[i] - origin);
    one.live.push(one.now);
    one.nodes.push(node[i]);
  }
  return [...points]
    .filter(([, one]) => one.at.length > 1)
    .slice(0, MOST_LINES)
    .map(([name, one]) => {
      const kept = thinned(one.live);
      return {
        title: `Live tensor memory, ${name}`,
        note: "allocated minus freed since the window began; memory allocated before is not included",
        unit: "bytes" as const,
        x: kept.map((i) => one.at[i]),
        lines: [{ name: "live", values: kept.map((i) => one.live[i]) }],
        nodes: kept.map((i) => one.nodes[i]),
      };
    });
}

/** Indices of at most MOST_POINTS points: of each stretch its first, smallest and largest. */
export function thinned(values: number[]): number[] {
  if (values.length <= MOST_POINTS) return values.map((_, i) => i);
  const stretch = Math.ceil(values.length / (MOST_POINTS / 3));
  const kept: number[] = [];
  for (let from = 0; from < values.length; from += stretch) {
    let [low, high] = [from, from];
    for (let i = from; i < Math.min(values.length, from + stretch); i++) {
      if (values[i] < values[low]) low = i;
      if (values[i] > values[high]) high = i;
    }
    kept.push(...[...new Set([from, low, high])].sort((a, b) => a - b));
  }
  return kept;
}

/** The share of each stretch in which a device, or the operators of a thread, ran. */
function busy(profile: Profile, origin: number, end: number): Chart[] {
  const { kind, start_ns, duration_ns, thread, device } = profile.tables.events;
  const bin = end / BINS;
  const lines = new Map<string, { until: number; values: Float64Array; device: boolean }>();
  for (let i = 0; i < kind.length; i++) {
    const name = EventKindNames[kind[i]];
    const onDevice = DEVICE_KINDS.has(name) && device[i] >= 0;
    if (!onDevice && (name !== "operator" || thread[i] < 0)) continue;
    const key = onDevice
      ? profile.text(profile.tables.devices.name[device[i]]) + deviceNumber(profile, device[i])
      : `operators of ${profile.text(profile.tables.threads.name[thread[i]]) || "a thread"}${threadNumber(profile, thread[i])}`;
    let line = lines.get(key);
    if (!line) lines.set(key, (line = { until: 0, values: new Float64Array(BINS), device: onDevice }));
    const from = Math.max(start_ns[i] - origin, line.until);
    const to = duration_ns[i] < 0 ? end : start_ns[i] - origin + duration_ns[i];
    line.until = Math.max(line.until, to);
    for (let at = Math.floor(from / bin); at < BINS && at * bin < to; at++)
      line.values[at] += Math.max(0, Math.min(to, (at + 1) * bin) - Math.max(from, at * bin)) / bin;
  }
  if (!lines.size) return [];
  const devices = [...lines].filter(([, line]) => line.device);
  const shown = (devices.length ? devices : [...lines]).slice(0, MOST_LINES);
  return [
    {
      title: "Busy",
      note: "share of each interval in which some work ran; overlapping work counts once",
      unit: "share",
      x: Array.from({ length: BINS }, (_, i) => i * bin),
      lines: shown.map(([name, line]) => ({ name, values: [...line.values] })),
    },
  ];
}

function deviceNumber(profile: Profile, device: number): string {
  return profile.tables.devices.name.length > 1 ? ` ${profile.tables.devices.index[device]}` : "";
}

function threadNumber(profile: Profile, thread: number): string {
  const { process } = profile.tables.threads;
  return profile.tables.processes.pid.length > 1 ? `, ${processName(profile, process[thread])}` : "";
}

/** Device work launched and not yet ended, by device. */
function queues(profile: Profile, origin: number): Chart[] {
  const { kind, start_ns, duration_ns, thread, device, correlation } = profile.tables.events;
  const launched = new Map<number, number>();
  for (let i = 0; i < kind.length; i++)
    if (thread[i] >= 0 && correlation[i] > 0) launched.set(correlation[i], start_ns[i]);
  const changes = new Map<number, [number, number][]>();
  for (let i = 0; i < kind.length; i++) {
    const since = device[i] >= 0 && thread[i] < 0 ? launched.get(correlation[i]) : undefined;
    if (since === undefined || duration_ns[i] < 0) continue;
    if (!changes.has(device[i])) changes.set(device[i], []);
    changes.get(device[i])?.push([since - origin, 1], [start_ns[i] + duration_ns[i] - origin, -1]);
  }
  return [...changes].slice(0, MOST_LINES).map(([row, list]) => {
    list.sort((a, b) => a[0] - b[0]);
    let now = 0;
    const depths = list.map(([, by]) => (now += by));
    const kept = thinned(depths);
    return {
      title: `Queued on ${profile.text(profile.tables.devices.name[row])}${deviceNumber(profile, row)}`,
      note: "device work that was launched and had not ended; near one, the device waits for the CPU",
      unit: "1" as const,
      x: kept.map((i) => list[i][0]),
      lines: [{ name: "queued", values: kept.map((i) => depths[i]) }],
    };
  });
}

/** Bytes per second of copies, by device. */
function transfers(profile: Profile, origin: number, end: number): Chart[] {
  const { kind, start_ns, duration_ns, bytes, device } = profile.tables.events;
  const copy = EventKindNames.indexOf("copy");
  const bin = end / BINS;
  const lines = new Map<string, number[]>();
  for (let i = 0; i < kind.length; i++) {
    if (kind[i] !== copy || bytes[i] <= 0 || device[i] < 0) continue;
    const name = profile.text(profile.tables.devices.name[device[i]]) + deviceNumber(profile, device[i]);
    let line = lines.get(name);
    if (!line) lines.set(name, (line = new Array<number>(BINS).fill(0)));
    const from = start_ns[i] - origin;
    const long = Math.max(1, duration_ns[i]);
    for (let at = Math.floor(from / bin); at < BINS && at * bin < from + long; at++) {
      const inside = Math.min(from + long, (at + 1) * bin) - Math.max(from, at * bin);
      line[at] += (bytes[i] * (inside / long)) / (bin / 1e9);
    }
  }
  if (!lines.size) return [];
  return [
    {
      title: "Transfers",
      note: "bytes that copies moved, per second",
      unit: "bytes/s",
      x: Array.from({ length: BINS }, (_, i) => i * bin),
      lines: [...lines].slice(0, MOST_LINES).map(([name, values]) => ({ name, values })),
    },
  ];
}
