// What a part of the timeline says: statistics of a range, what an event is joined with, and the window for another viewer.

import { backwardEdges } from "./dataflow";
import { operatorName } from "./frames";
import type { Profile } from "./profile";
import { EventKindNames } from "./schema.generated";
import type { StateName } from "./states";
import { firstEndingAfter, spanText, type Lane, type Timeline } from "./timeline";

export interface RangeRow {
  name: string;
  kind: string;
  count: number;
  /** Time inside the range. */
  sum_ns: number;
}

/** What a thread did in the range, by the kernel. */
export interface StateFacts {
  title: string;
  running_ns: number;
  runnable_ns: number;
  blocked_ns: number;
  /** The longest sums of what it waited for. */
  waits: { name: string; sum_ns: number }[];
}

export interface RangeFacts {
  states: StateFacts[];
  lanes: { title: string; busy_ns: number; spans: number }[];
  names: RangeRow[];
}

/** Sums over the events that lie at least partly in [from, to); of a thread its innermost work is not told apart. */
export function rangeFacts(profile: Profile, timeline: Timeline, from: number, to: number): RangeFacts {
  const { kind: kinds } = profile.tables.events;
  const frames = profile.tables.frames.kind.length;
  const sums = new Map<number, { span: number; count: number; sum_ns: number }>(); // by kind of event and frame
  const lanes = timeline.lanes.filter(measured).map((lane) => {
    const inside = eventsIn(timeline, lane, from, to);
    let busy_ns = 0;
    let until = from;
    for (const span of inside) {
      const start = Math.max(from, timeline.start[span]);
      const end = Math.min(to, timeline.end[span]);
      if (end > until) busy_ns += end - Math.max(start, until);
      until = Math.max(until, end);
      const key = kinds[timeline.event[span]] * frames + profile.frame[timeline.node[span]];
      let one = sums.get(key);
      if (!one) sums.set(key, (one = { span, count: 0, sum_ns: 0 }));
      one.count++;
      one.sum_ns += end - start;
    }
    return { title: lane.title, busy_ns, spans: inside.length };
  });
  const rows = new Map<string, RangeRow>();
  for (const { span, count, sum_ns } of sums.values()) {
    const kind = EventKindNames[kinds[timeline.event[span]]] ?? "event";
    const name = operatorName(profile.name(timeline.node[span]));
    const row = rows.get(`${kind} ${name}`);
    if (row) {
      row.count += count;
      row.sum_ns += sum_ns;
    } else rows.set(`${kind} ${name}`, { name, kind, count, sum_ns });
  }
  return {
    states: timeline.lanes.filter((lane) => lane.kind === "states").map((lane) => stateFacts(timeline, lane, from, to)),
    lanes: lanes.filter((lane) => lane.spans > 0),
    names: [...rows.values()].sort((a, b) => b.sum_ns - a.sum_ns),
  };
}

const measured = ({ kind }: Lane) => kind !== "states" && kind !== "predicted";

const MOST_WAITS = 4;

function stateFacts(timeline: Timeline, lane: Lane, from: number, to: number): StateFacts {
  const facts: StateFacts = { title: lane.title, running_ns: 0, runnable_ns: 0, blocked_ns: 0, waits: [] };
  const waits = new Map<string, number>();
  for (const row of lane.rows)
    for (let i = firstEndingAfter(timeline, row, from); i < row.length && timeline.start[row[i]] < to; i++) {
      const text = timeline.texts[-1 - timeline.node[row[i]]];
      const ns = Math.min(to, timeline.end[row[i]]) - Math.max(from, timeline.start[row[i]]);
      facts[`${text.kind as StateName}_ns`] += ns;
      if (text.kind !== "running") waits.set(text.name, (waits.get(text.name) ?? 0) + ns);
    }
  facts.waits = [...waits].map(([name, sum_ns]) => ({ name, sum_ns })).sort((a, b) => b.sum_ns - a.sum_ns);
  facts.waits.length = Math.min(MOST_WAITS, facts.waits.length);
  return facts;
}

/** Spans of events that lie at least partly in the range, in the order they began. */
function eventsIn(timeline: Timeline, lane: Lane, from: number, to: number): Int32Array {
  const parts: number[] = [];
  for (const row of lane.rows)
    for (let i = firstEndingAfter(timeline, row, from); i < row.length && timeline.start[row[i]] < to; i++)
      if (timeline.event[row[i]] >= 0) parts.push(row[i]);
  return Int32Array.from(parts).sort(); // spans are numbered as they began
}

export interface Link {
  what: "launch" | "backward" | "gradient" | "wait";
  from: number;
  to: number;
}

const MOST_LINKS = 200;

/** Arrows from and to an event: the launch of device work, a forward operator's backward, the nodes of a backward pass that
 * hand it gradients or get them from it, a wait's awaited. */
export function linksOf(profile: Profile, event: number): Link[] {
  const { events } = profile.tables;
  const links: Link[] = gradients(profile, event);
  const correlation = events.correlation[event];
  const sequence = events.sequence[event];
  const awaited = events.awaits_correlation[event];
  const launches = launchesIn(profile, event);
  const isBackward = (one: number) => events.forward_thread[one] >= 0;
  for (let other = 0; other < events.kind.length && links.length < MOST_LINKS; other++) {
    if (other === event) continue;
    const by = events.thread[other] < 0 ? launches.get(events.correlation[other]) : undefined;
    if (by !== undefined) links.push({ what: "launch", from: by, to: other });
    if (
      correlation > 0 &&
      events.thread[event] < 0 &&
      events.correlation[other] === correlation &&
      events.thread[other] >= 0
    )
      links.push({ what: "launch", from: other, to: event });
    if (sequence >= 0 && events.sequence[other] === sequence && isBackward(event) !== isBackward(other)) {
      const [forward, backward] = isBackward(event) ? [other, event] : [event, other];
      if (events.thread[forward] === events.forward_thread[backward])
        links.push({ what: "backward", from: forward, to: backward });
    }
    if (awaited > 0 && events.correlation[other] === awaited && EventKindNames[events.kind[other]] === "event_record")
      links.push({ what: "wait", from: event, to: other });
    if (correlation > 0 && events.awaits_correlation[other] === correlation)
      links.push({ what: "wait", from: other, to: event });
  }
  return links;
}

function gradients(profile: Profile, event: number): Link[] {
  const { source, target, nodeOf } = backwardEdges(profile);
  const node = nodeOf.get(event);
  const links: Link[] = [];
  for (let i = 0; node !== undefined && i < source.length && links.length < MOST_LINKS; i++)
    if (source[i] === node) links.push({ what: "gradient", from: event, to: target[i] });
    else if (target[i] === node) links.push({ what: "gradient", from: source[i], to: event });
  return links;
}

/** By correlation id the calls that launch device work: the event itself, or those inside it on its thread. */
function launchesIn(profile: Profile, event: number): Map<number, number> {
  const { start_ns, duration_ns, thread, correlation } = profile.tables.events;
  const found = new Map<number, number>();
  if (thread[event] < 0) return found;
  const end = start_ns[event] + Math.max(0, duration_ns[event]);
  for (let i = event; i < thread.length && start_ns[i] <= end && found.size < MOST_LINKS; i++)
    if (thread[i] === thread[event] && correlation[i] > 0) found.set(correlation[i], i);
  return found;
}

/** The window in the JSON that Perfetto and Chrome read: complete events in microseconds, arrows from launch to work. */
export function chromeTrace(profile: Profile, timeline: Timeline): string {
  const { events } = profile.tables;
  const lines: string[] = [];
  timeline.lanes.forEach((lane, tid) => {
    const pid = lane.process + 1;
    lines.push(JSON.stringify({ ph: "M", pid, tid, name: "thread_name", args: { name: lane.title } }));
    for (const row of lane.rows)
      for (const span of row) {
        const event = timeline.event[span];
        const text = spanText(profile, timeline, span);
        const kind = event >= 0 ? (EventKindNames[events.kind[event]] ?? "event") : text.kind;
        const { name } = text;
        const ts = timeline.start[span] / 1000;
        const dur = (timeline.end[span] - timeline.start[span]) / 1000;
        lines.push(JSON.stringify({ ph: "X", pid, tid, name, cat: kind, ts, dur }));
        const id = event >= 0 ? events.correlation[event] : 0;
        if (id > 0) {
          const flow = { cat: "launch", name: "launch", id, pid, tid, ts };
          lines.push(JSON.stringify(lane.kind === "stream" ? { ph: "f", bp: "e", ...flow } : { ph: "s", ...flow }));
        }
      }
  });
  return `{"displayTimeUnit":"ns","traceEvents":[\n${lines.join(",\n")}\n]}\n`;
}
