// Where ranks meet: the collectives of a window, matched over the ranks by their place in the step, so that lanes of several
// machines stand on one clock and who comes last is seen.

import type { NodeRow, Profile } from "./profile";
import { EventKindNames } from "./schema.generated";
import type { Timeline } from "./timeline";

/** What carries collectives, and the calls of them, where no collective of a device was recorded: the first that there is. */
const CARRIED = [/^(?:nccl|gloo|mpi|ucc):/, /^c10d::/];
const KINDS = new Set(["collective", "operator", "region"]);

export interface Meetings {
  /** By row of processes: by how much its clock must be moved for collectives to end together. */
  shift_ns: Map<number, number>;
  /** By row of processes: collectives to which it came last. */
  last: Map<number, number>;
  count: number;
  /** By row of processes: the collectives' events in the order they began. */
  events: Map<number, number[]>;
}

interface Met {
  start: number;
  end: number;
  event: number;
}

/** Null where fewer than two ranks met in the window. */
export function meetingsOf(profile: Profile): Meetings | null {
  const found = collectives(profile);
  const [first, ...others] = found.keys();
  if (!others.length) return null;
  const steps = [...(found.get(first) ?? [])].filter(([step]) => step >= 0);
  const shared = steps
    .filter(([step, here]) => others.every((one) => found.get(one)?.get(step)?.length === here.length))
    .flatMap(([step, here]) => here.map((_, number) => ({ step, number })));
  if (!shared.length) return null;
  const of = (process: number, { step, number }: { step: number; number: number }) =>
    found.get(process)?.get(step)?.[number] as Met;
  const shift_ns = new Map([[first, 0]]);
  for (const one of others) shift_ns.set(one, middle(shared.map((key) => of(first, key).end - of(one, key).end)));
  const last = new Map<number, number>();
  for (const key of shared) {
    const began = [...found.keys()].map((one) => [of(one, key).start + (shift_ns.get(one) ?? 0), one]);
    const [, latest] = began.reduce((a, b) => (b[0] > a[0] ? b : a));
    last.set(latest, (last.get(latest) ?? 0) + 1);
  }
  const events = new Map([...found].map(([one, of]) => [one, [...of.values()].flat().map(({ event }) => event)]));
  return { shift_ns, last, count: shared.length, events };
}

/** By process of a rank its collectives, by their step. */
function collectives(profile: Profile): Map<number, Map<number, Met[]>> {
  const { events, devices, threads, processes } = profile.tables;
  const carried = new Map<NodeRow, number>();
  const carriedBy = (node: NodeRow) => {
    let known = carried.get(node);
    if (known === undefined) carried.set(node, (known = CARRIED.findIndex((one) => one.test(profile.name(node)))));
    return known;
  };
  const levels: number[][] = [[], ...CARRIED.map(() => [])];
  for (let event = 0; event < events.kind.length; event++) {
    const kind = EventKindNames[events.kind[event]];
    if (!KINDS.has(kind) || events.duration_ns[event] < 0) continue;
    if (kind === "collective" && events.device[event] >= 0) levels[0].push(event);
    else if (events.thread[event] >= 0 && events.node[event] >= 0)
      levels[carriedBy(events.node[event]) + 1 || -1]?.push(event);
  }
  const level = levels.findIndex((one) => one.length);
  const stepOf = level > 0 ? stepsByTime(profile) : (event: number) => events.step[event]; // of the device by its launch
  const found = new Map<number, Map<number, Met[]>>();
  for (const event of levels[level] ?? []) {
    const thread = events.thread[event];
    const process = thread >= 0 ? threads.process[thread] : devices.process[events.device[event]];
    if (processes.rank[process] < 0) continue;
    const steps = found.get(process) ?? new Map<number, Met[]>();
    found.set(process, steps);
    const step = stepOf(event, process);
    const met = steps.get(step) ?? [];
    steps.set(step, met);
    const start = events.start_ns[event];
    met.push({ start, end: start + events.duration_ns[event], event });
  }
  return found;
}

/** The step in which an event began on the clock of its process: a thread that carries collectives knows no steps. */
function stepsByTime(profile: Profile): (event: number, process: number) => number {
  const { kind, thread, start_ns, duration_ns, step } = profile.tables.events;
  const steps = new Map<number, number[]>();
  for (let event = 0; event < kind.length; event++) {
    if (EventKindNames[kind[event]] !== "step" || thread[event] < 0) continue;
    const process = profile.tables.threads.process[thread[event]];
    const known = steps.get(process) ?? [];
    steps.set(process, known);
    known.push(event);
  }
  return (event, process) => {
    const at = start_ns[event];
    const found = steps.get(process)?.find((one) => start_ns[one] <= at && at < start_ns[one] + duration_ns[one]);
    return found === undefined ? -1 : step[found];
  };
}

function middle(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

/** Every lane moved as its process must be; the first of all begins at zero. */
export function alignedAt(timeline: Timeline, { shift_ns }: Meetings): Timeline {
  const shifts = timeline.lanes.map(({ process }) => shift_ns.get(process) ?? 0);
  const least = Math.min(...shifts);
  const [start, end] = [timeline.start.slice(), timeline.end.slice()];
  timeline.lanes.forEach(({ rows }, lane) => {
    const by = shifts[lane] - least;
    for (const row of rows)
      for (const span of row) {
        start[span] += by;
        end[span] += by;
      }
  });
  return { ...timeline, start, end, length_ns: timeline.length_ns + Math.max(...shifts) - least };
}
