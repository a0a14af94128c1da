// A trace window as lanes of spans: a lane per thread with its call stack over time, one per stream of a device, one for the
// steps. Spans of one row never overlap and stand in the order they began, so what is in sight is found by search.

import type { NodeRow, Profile } from "./profile";
import { scopesOf } from "./scopes";
import { EventKindNames, type EventKind } from "./schema.generated";

export interface Lane {
  kind: "steps" | "thread" | "stream";
  title: string;
  process: number;
  /** Row of threads or devices, -1 for steps. */
  of: number;
  stream: number;
  /** By depth: spans in the order they began. */
  rows: Int32Array[];
}

export interface Timeline {
  lanes: Lane[];
  /** Nanoseconds from the first event. */
  start: Float64Array;
  end: Float64Array;
  node: Int32Array;
  /** Row of the table `events`, or -1 for a frame of the call stack that has no event of its own. */
  event: Int32Array;
  /** The span of an event, -1 where it has none. */
  spanOf: Int32Array;
  length_ns: number;
  origin_ns: number;
}

const NOT_DRAWN = new Set<EventKind>(["allocate", "overhead"]);
const NO_TOP = new Set(["root", "process", "thread"]);

/** Null where the file holds no window. `hideLibrary`: leave library frames out of the call stacks. */
export function timelineOf(profile: Profile, hideLibrary: boolean): Timeline | null {
  const { events } = profile.tables;
  const count = events.start_ns.length;
  if (!count) return null;
  const origin = events.start_ns[0];
  let last = 0;
  for (let i = 0; i < count; i++)
    last = Math.max(last, events.start_ns[i] + Math.max(0, events.duration_ns[i]) - origin);
  const spans = new Spans(count);
  const lanes = new Map<string, Builder>();
  const paths = new Paths(profile, hideLibrary);
  const order = ordered(events.start_ns, events.duration_ns);
  const spanOf = new Int32Array(count).fill(-1);
  for (const event of order) {
    const kind = EventKindNames[events.kind[event]];
    const thread = events.thread[event];
    const device = events.device[event];
    if (NOT_DRAWN.has(kind) || (thread < 0 && device < 0)) continue;
    const start = events.start_ns[event] - origin;
    const duration = events.duration_ns[event];
    const end = duration < 0 ? last : start + duration; // had not ended when the window closed
    const lane = laneOf(lanes, profile, kind, thread, device, events.stream[event], spans);
    const path = lane.lane.kind === "thread" ? paths.of(events.node[event]) : [events.node[event]];
    spanOf[event] = lane.put(path, start, end, event, events.step[event]);
  }
  const made = [...lanes.values()].map((lane) => lane.finished()).sort(byPlace);
  return { lanes: made, ...spans.columns(), spanOf, length_ns: Math.max(last, 1), origin_ns: origin };
}

/** By start, and of those that start at once the longest first, so that what holds others comes before them. */
function ordered(starts: Float64Array, durations: Float64Array): Uint32Array {
  const order = Uint32Array.from(starts, (_, i) => i);
  for (let from = 0; from < order.length;) {
    let to = from + 1;
    while (to < order.length && starts[to] === starts[from]) to++;
    if (to - from > 1)
      order
        .subarray(from, to)
        .sort(
          (a, b) =>
            (durations[b] < 0 ? Infinity : durations[b]) - (durations[a] < 0 ? Infinity : durations[a]) || a - b,
        );
    from = to;
  }
  return order;
}

class Spans {
  count = 0;
  private start: Float64Array;
  end: Float64Array;
  private node: Int32Array;
  private event: Int32Array;

  constructor(room: number) {
    this.start = new Float64Array(room);
    this.end = new Float64Array(room);
    this.node = new Int32Array(room);
    this.event = new Int32Array(room);
  }

  add(start: number, end: number, node: NodeRow, event: number): number {
    if (this.count === this.start.length) {
      const grown = <T extends Float64Array | Int32Array>(old: T, made: T): T => (made.set(old), made);
      const room = 2 * this.count + 16;
      this.start = grown(this.start, new Float64Array(room));
      this.end = grown(this.end, new Float64Array(room));
      this.node = grown(this.node, new Int32Array(room));
      this.event = grown(this.event, new Int32Array(room));
    }
    this.start[this.count] = start;
    this.end[this.count] = end;
    this.node[this.count] = node;
    this.event[this.count] = event;
    return this.count++;
  }

  columns(): Pick<Timeline, "start" | "end" | "node" | "event"> {
    return {
      start: this.start.subarray(0, this.count),
      end: this.end.subarray(0, this.count),
      node: this.node.subarray(0, this.count),
      event: this.event.subarray(0, this.count),
    };
  }
}

interface Open {
  node: NodeRow;
  span: number;
  /** -1 for a frame without an event of its own, which lasts as long as what is in it. */
  event: number;
  end: number;
}

/** One lane while its events come in order: the frames that are open, the outermost first. */
class Builder {
  private readonly rows: number[][] = [];
  private readonly open: Open[] = [];
  /** Places in `open` that are events. */
  private readonly events: number[] = [];
  private step = -1;

  constructor(
    readonly lane: Lane,
    private readonly spans: Spans,
    private readonly frame: Uint32Array,
  ) {}

  /** The span of the event itself, the last of `path`. */
  put(path: readonly NodeRow[], start: number, end: number, event: number, step: number): number {
    const leaf = path.length - 1;
    const { open, events } = this;
    let held = events.length - 1; // an event that still runs holds what begins now, whatever its call path says
    while (held >= 0 && open[events[held]].end <= start) held--;
    const running = held >= 0 ? events[held] : -1;
    let depth = 0;
    let at = 0;
    for (; depth < open.length; depth++) {
      if (at < leaf && this.same(open[depth].node, path[at]) && (depth <= running || this.joins(open[depth], step)))
        at++;
      else if (depth > running) break;
    }
    this.close(depth);
    this.step = step;
    for (; at <= leaf; at++) {
      const own = at === leaf ? event : -1;
      const span = this.spans.add(start, end, path[at], own);
      (this.rows[open.length] ??= []).push(span);
      if (own >= 0) events.push(open.length);
      open.push({ node: path[at], span, event: own, end });
    }
    return open[open.length - 1].span;
  }

  /** Closes what is deeper; a frame without an event ends with the last of what was in it. */
  private close(depth: number): void {
    const { open, events, spans } = this;
    while (open.length > depth) {
      const frame = open.pop() as Open;
      if (frame.event < 0) spans.end[frame.span] = frame.end;
      else events.pop();
      const holder = open[open.length - 1];
      if (holder && holder.event < 0 && frame.end > holder.end) holder.end = frame.end;
    }
  }

  /** One frame below the same frames; backward work of one module hangs at many nodes. */
  private same(a: NodeRow, b: NodeRow): boolean {
    return a === b || this.frame[a] === this.frame[b];
  }

  /** Frames without an event of their own join within a step. */
  private joins(frame: Open, step: number): boolean {
    return frame.event < 0 && step === this.step;
  }

  finished(): Lane {
    this.close(0);
    this.lane.rows = this.rows.map((row) => Int32Array.from(row));
    return this.lane;
  }
}

/** Frames of a node from below its thread down to it. */
class Paths {
  private readonly known = new Map<NodeRow, NodeRow[]>();

  constructor(
    private readonly profile: Profile,
    private readonly hideLibrary: boolean,
  ) {}

  of(node: NodeRow): NodeRow[] {
    let path = this.known.get(node);
    if (path) return path;
    path = [];
    for (let row = node; row > 0 && !NO_TOP.has(this.profile.kind(row)); row = this.profile.parent[row]) {
      if (row === node || !this.hideLibrary || !this.profile.library(this.profile.frame[row])) path.push(row);
      if (row === node || this.profile.kind(row) !== "phase" || this.profile.name(row) !== "backward") continue;
      // backward work hangs below its forward path, which did not run then: its module is told, not its lines
      const { module } = scopesOf(this.profile);
      const holder = module[row];
      if (holder >= 0) path.splice(path.length - 1, 0, holder);
      break;
    }
    if (!path.length) path.push(node);
    path.reverse();
    this.known.set(node, path);
    return path;
  }
}

function laneOf(
  lanes: Map<string, Builder>,
  profile: Profile,
  kind: EventKind,
  thread: number,
  device: number,
  stream: number,
  spans: Spans,
): Builder {
  const { threads, devices } = profile.tables;
  const onThread = thread >= 0;
  const process = onThread ? threads.process[thread] : devices.process[device];
  const key = kind === "step" ? `steps ${process}` : onThread ? `thread ${thread}` : `stream ${device} ${stream}`;
  let lane = lanes.get(key);
  if (!lane) {
    const name = processName(profile, process);
    const prefix = profile.tables.processes.pid.length > 1 ? `${name}, ` : "";
    const said =
      kind === "step"
        ? { kind: "steps" as const, title: `${prefix}steps`, of: -1 }
        : onThread
          ? { kind: "thread" as const, title: `${prefix}${profile.text(threads.name[thread]) || "thread"}`, of: thread }
          : {
              kind: "stream" as const,
              title: `${prefix}${profile.text(devices.name[device])} stream ${stream}`,
              of: device,
            };
    lanes.set(
      key,
      (lane = new Builder({ ...said, process, stream: onThread ? -1 : stream, rows: [] }, spans, profile.frame)),
    );
  }
  return lane;
}

export function processName(profile: Profile, process: number): string {
  const { rank, pid } = profile.tables.processes;
  return rank[process] >= 0 ? `rank ${rank[process]}` : `process ${pid[process]}`;
}

function byPlace(a: Lane, b: Lane): number {
  const order = { steps: 0, thread: 1, stream: 2 };
  return a.process - b.process || order[a.kind] - order[b.kind] || a.of - b.of || a.stream - b.stream;
}

/** The first span of a row that ends after `time`. */
export function firstEndingAfter({ end }: Timeline, row: Int32Array, time: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[row[middle]] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first span of a row from `low` on that begins at `time` or later; quick where it is near. */
export function firstStartingAt({ start }: Timeline, row: Int32Array, time: number, low: number): number {
  let stride = 1;
  let high = low;
  while (high < row.length && start[row[high]] < time) {
    low = high + 1;
    high += stride;
    stride *= 2;
  }
  high = Math.min(high, row.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[row[middle]] >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}
