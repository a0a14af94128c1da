// A predicted timeline (`leadline whatif`) as lanes below the measured ones. Python makes it: python/leadline/report/predicted.py.

import { Growing, Spans, Texts } from "./spans";
import { byPlace, type Lane, type Timeline } from "./timeline";

export interface Scenario {
  title: string;
  said: string;
}

export interface PredictedLane {
  title: string;
  /** Rows of processes, and of threads or devices; -1 where it was not measured. */
  process: number;
  of: number;
  stream: number;
  /** Spans that nest, an outer one before what is in it; nanoseconds from `begin_ns`. */
  start_ns: number[];
  end_ns: number[];
  text: number[];
}

export interface Chosen extends Scenario {
  assumptions: string[];
  trouble: string;
  begin_ns?: number;
  lanes: PredictedLane[];
  texts?: { name: string; kind: string }[];
}

export interface Predicted {
  /** Why there is none; empty where there is. */
  trouble: string;
  scenarios: Scenario[];
  chosen: Chosen | null;
}

/** The timeline with the predicted lanes, each below the lane that it is of. */
export function withPrediction(timeline: Timeline, chosen: Chosen): Timeline {
  const room = chosen.lanes.reduce((sum, lane) => sum + lane.start_ns.length, 0);
  const spans = Spans.from(timeline, room);
  const texts = Texts.from(timeline.texts);
  const nodes = (chosen.texts ?? []).map(({ name, kind }) => texts.node(name, kind));
  const shift = (chosen.begin_ns ?? timeline.origin_ns) - timeline.origin_ns;
  const lanes = chosen.lanes.map((lane) => laneOf(lane, chosen.title, shift, nodes, spans));
  const last = lanes.reduce((most, lane) => Math.max(most, spans.lastEnd(lane.rows[0])), timeline.length_ns);
  return {
    ...timeline,
    ...spans.columns(),
    texts: texts.list,
    lanes: [...timeline.lanes, ...lanes].sort(byPlace),
    length_ns: last,
  };
}

function laneOf(lane: PredictedLane, scenario: string, shift: number, nodes: number[], spans: Spans): Lane {
  const rows: Growing[] = [];
  const open: number[] = []; // ends of what is open
  lane.start_ns.forEach((start, i) => {
    while (open.length && open[open.length - 1] <= start) open.pop();
    const end = Math.max(lane.end_ns[i], start);
    const span = spans.add(start + shift, end + shift, nodes[lane.text[i]] ?? -1, -1);
    (rows[open.length] ??= new Growing()).push(span);
    open.push(end);
  });
  return {
    kind: "predicted",
    title: `${lane.title}, predicted: ${scenario}`,
    process: lane.process,
    of: lane.of,
    stream: lane.stream,
    rows: rows.map((row) => row.finished()),
    events: new Int32Array(),
  };
}
