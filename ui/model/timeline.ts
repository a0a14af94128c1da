// A trace window as lanes of spans: a lane per thread with its call stack over time, one per stream of a device, one for the
// steps. Spans of one row never overlap and stand in the order they began, so what is in sight is found by search.

import { GRAPH_ROLES, rolesInGraphs, type GraphRole } from "./graph_roles";
import type { NodeRow, Profile } from "./profile";
import { scopesOf } from "./scopes";
import { EventKindNames, type EventKind } from "./schema.generated";
import { Growing, Spans, Texts, type SpanText } from "./spans";
import { threadStates, type ThreadStates } from "./states";
import { wholeSteps } from "./whole_steps";

export interface Lane {
  kind: "steps" | "states" | "thread" | "stream" | "predicted";
  title: string;
  process: number;
  /** Row of threads or devices, -1 for steps and for predicted lanes of what was not measured. */
  of: number;
  stream: number;
  /** By depth: spans in the order they began. */
  rows: Int32Array[];
  /** Its outermost events, in the order they began: when the lane was at work. */
  events: Int32Array;
}

export interface Timeline {
  lanes: Lane[];
  /** Nanoseconds from the first event. */
  start: Float64Array;
  end: Float64Array;
  /** Of a span that is no call path -1 less the row of `texts`. */
  node: Int32Array;
  texts: SpanText[];
  /** Row of the table `events`, or -1 for a frame of the call stack that has no event of its own. */
  event: Int32Array;
  /** The span of an event, -1 where it has none. */
  spanOf: Int32Array;
  length_ns: number;
  origin_ns: number;
}

const NOT_DRAWN: EventKind[] = ["allocate", "overhead"];
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
  const lanes = new Lanes(profile, spans);
  const paths = new Paths(profile, hideLibrary);
  const order = ordered(events.start_ns, events.duration_ns);
  const spanOf = new Int32Array(count).fill(-1);
  const steps = wholeSteps(profile);
  const roleOf = rolesInGraphs(profile);
  const hidden = EventKindNames.map((kind) => NOT_DRAWN.includes(kind));
  for (const event of order) {
    const thread = events.thread[event];
    const device = events.device[event];
    if (hidden[events.kind[event]] || (thread < 0 && device < 0)) continue;
    const duration = events.duration_ns[event];
    const step = steps.get(event);
    const start = step ? step[0] - origin : events.start_ns[event] - origin;
    const end = step ? step[1] - origin : duration < 0 ? last : start + duration; // had not ended when the window closed
    const role = roleOf(event);
    const lane = role ? lanes.ofRole(role, device) : lanes.of(events.kind[event], thread, device, events.stream[event]);
    const path = lane.lane.kind === "thread" ? paths.of(events.node[event]) : [events.node[event]];
    spanOf[event] = lane.put(path, start, end, event, events.step[event]);
  }
  const texts = new Texts();
  const made = lanes.finished();
  for (const states of threadStates(profile)) made.push(stateLane(profile, states, origin, last, spans, texts));
  made.sort(byPlace);
  return {
    lanes: made,
    ...spans.columns(),
    texts: texts.list,
    spanOf,
    length_ns: Math.max(last, 1),
    origin_ns: origin,
  };
}

/** By start, and of those that start at once the longest first, so that what holds others comes before them. */
function ordered(starts: Float64Array, durations: Float64Array): Uint32Array {
  const order = new Uint32Array(starts.length);
  for (let i = 0; i < order.length; i++) order[i] = i;
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

/** What the kernel did with a thread, cut to the window. */
function stateLane(
  profile: Profile,
  states: ThreadStates,
  origin: number,
  last: number,
  spans: Spans,
  texts: Texts,
): Lane {
  const row = new Growing();
  states.state.forEach((state, i) => {
    const [start, end] = [Math.max(0, states.start_ns[i] - origin), Math.min(last, states.end_ns[i] - origin)];
    if (end > start) row.push(spans.add(start, end, texts.node(stateText(states, i), state), -1));
  });
  const process = profile.tables.threads.process[states.thread];
  const title = `${threadTitle(profile, states.thread)}: on and off the CPU`;
  const rows = [row.finished()];
  return { kind: "states", title, process, of: states.thread, stream: -1, rows, events: rows[0] };
}

/** `blocked in futex, ended by loader`. */
function stateText({ state, reason, other }: ThreadStates, i: number): string {
  if (state[i] === "running") return "running";
  if (state[i] === "runnable") return other[i] ? `runnable, ${other[i]} had the CPU` : "runnable";
  return `blocked${reason[i] ? ` in ${reason[i]}` : ""}${other[i] ? `, ended by ${other[i]}` : ""}`;
}

function threadTitle(profile: Profile, thread: number): string {
  const { threads, processes } = profile.tables;
  const prefix = processes.pid.length > 1 ? `${processName(profile, threads.process[thread])}, ` : "";
  return `${prefix}${profile.text(threads.name[thread]) || "thread"}`;
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
  private readonly rows: Growing[] = [];
  /** The first `depth` are open; the others wait to be used again. */
  private readonly open: Open[] = [];
  private depth = 0;
  /** Places in `open` that are events. */
  private readonly events: number[] = [];
  private step = -1;
  private readonly outermost = new Growing();

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
    for (; depth < this.depth; depth++) {
      if (at < leaf && this.same(open[depth].node, path[at]) && (depth <= running || this.joins(open[depth], step)))
        at++;
      else if (depth > running) break;
    }
    this.close(depth);
    this.step = step;
    let span = -1;
    for (; at <= leaf; at++) {
      const own = at === leaf ? event : -1;
      span = this.spans.add(start, end, path[at], own);
      if (own >= 0) {
        if (!events.length) this.outermost.push(span);
        events.push(this.depth);
      }
      this.begin(path[at], span, own, end);
    }
    return span;
  }

  private begin(node: NodeRow, span: number, event: number, end: number): void {
    (this.rows[this.depth] ??= new Growing()).push(span);
    const frame = (this.open[this.depth++] ??= { node, span, event, end });
    frame.node = node;
    frame.span = span;
    frame.event = event;
    frame.end = end;
  }

  /** Closes what is deeper; a frame without an event ends with the last of what was in it. */
  private close(depth: number): void {
    const { open, events, spans } = this;
    while (this.depth > depth) {
      const frame = open[--this.depth];
      if (frame.event < 0) spans.end[frame.span] = frame.end;
      else events.pop();
      const holder = this.depth ? open[this.depth - 1] : null;
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
    this.lane.rows = this.rows.map((row) => row.finished());
    this.lane.events = this.outermost.finished();
    return this.lane;
  }
}

/** Frames of a node from below its thread down to it. */
class Paths {
  private readonly known: (NodeRow[] | undefined)[] = [];

  constructor(
    private readonly profile: Profile,
    private readonly hideLibrary: boolean,
  ) {}

  of(node: NodeRow): NodeRow[] {
    let path = this.known[node];
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
    this.known[node] = path;
    return path;
  }
}

/** The lanes of a window as its events ask for them. */
class Lanes {
  private readonly known = new Map<number, Builder>();
  private readonly step = EventKindNames.indexOf("step");

  constructor(
    private readonly profile: Profile,
    private readonly spans: Spans,
  ) {}

  of(kind: number, thread: number, device: number, stream: number): Builder {
    const isStep = kind === this.step;
    const { threads, devices } = this.profile.tables;
    // one number for each: threads, then what device and stream make, below zero the steps of a process
    const process = thread >= 0 ? threads.process[thread] : devices.process[device];
    const key = isStep ? -1 - process : thread >= 0 ? thread : (device + 1) * 2 ** 33 + stream;
    const known = this.known.get(key);
    return known ?? this.begun(key, this.named(isStep, thread, device, stream), process, thread >= 0 ? -1 : stream);
  }

  /** What captured graphs ran on a device, by role: after its streams. */
  ofRole(role: GraphRole, device: number): Builder {
    const stream = 2 ** 32 + GRAPH_ROLES.indexOf(role);
    const key = (device + 1) * 2 ** 33 + stream;
    const known = this.known.get(key);
    if (known) return known;
    const { devices } = this.profile.tables;
    const { kind, title, of } = this.named(false, -1, device, -1);
    const named = { kind, of, title: title.replace(/ stream -1$/, `, graphs: ${role}`) };
    return this.begun(key, named, devices.process[device], stream);
  }

  private begun(key: number, named: Pick<Lane, "kind" | "title" | "of">, process: number, stream: number): Builder {
    const lane = { ...named, process, stream, rows: [], events: new Int32Array() };
    const made = new Builder(lane, this.spans, this.profile.frame);
    this.known.set(key, made);
    return made;
  }

  private named(isStep: boolean, thread: number, device: number, stream: number): Pick<Lane, "kind" | "title" | "of"> {
    const { profile } = this;
    const { threads, devices, processes } = profile.tables;
    const process = thread >= 0 ? threads.process[thread] : devices.process[device];
    const prefix = processes.pid.length > 1 ? `${processName(profile, process)}, ` : "";
    if (isStep) return { kind: "steps", title: `${prefix}steps`, of: -1 };
    if (thread >= 0) return { kind: "thread", title: threadTitle(profile, thread), of: thread };
    return { kind: "stream", title: `${prefix}${profile.text(devices.name[device])} stream ${stream}`, of: device };
  }

  finished(): Lane[] {
    return [...this.known.values()].map((lane) => lane.finished());
  }
}

export function processName(profile: Profile, process: number): string {
  const { rank, pid } = profile.tables.processes;
  return rank[process] >= 0 ? `rank ${rank[process]}` : `process ${pid[process]}`;
}

/** Steps, then what devices did, which most often sets their length, then each thread below what the kernel did with it; what
 * was predicted below what it is of. */
export function byPlace(a: Lane, b: Lane): number {
  const order = { steps: 0, stream: 1, states: 2, thread: 2, predicted: 1 };
  const rank = ({ kind, stream, of }: Lane) => (kind !== "predicted" || stream >= 0 ? order[kind] : of >= 0 ? 2 : 3);
  const within = { steps: 0, states: 0, thread: 1, stream: 1, predicted: 2 };
  return (
    a.process - b.process || rank(a) - rank(b) || a.of - b.of || a.stream - b.stream || within[a.kind] - within[b.kind]
  );
}

/** Only the lanes of one process; all where it is -1. */
export function ofProcess(timeline: Timeline, process: number): Timeline {
  return process < 0 ? timeline : { ...timeline, lanes: timeline.lanes.filter((lane) => lane.process === process) };
}

/** Name and kind of what a span is. */
export function spanText(profile: Profile, timeline: Timeline, span: number): SpanText {
  const node = timeline.node[span];
  return node < 0 ? timeline.texts[-1 - node] : { name: profile.name(node), kind: profile.kind(node) };
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

/** Share of the window in which a lane's events ran, 0 to 1. */
export function busyShare(timeline: Timeline, lane: Lane): number {
  let busy = 0;
  for (const span of lane.events) busy += timeline.end[span] - timeline.start[span];
  return busy / timeline.length_ns;
}
