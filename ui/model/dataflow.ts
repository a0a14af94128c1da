// Edges between the nodes of a backward pass: the graph that was walked when the pass began, joined with the events that ran
// its nodes by name and sequence number. The rules of python/leadline/trace/dataflow.py.

import type { Profile } from "./profile";
import { dataflowOf, movedOf, recordsOf } from "./records";
import { isObject } from "./reader";
import { EventKindNames } from "./schema.generated";

const EVALUATE = "autograd::engine::evaluate_function: ";
const ACCUMULATE = "AccumulateGrad";

/** A node that the engine ran: its event, and the event of the operator of its name inside. */
interface Ran {
  begin: number;
  end: number;
  event: number;
  inner: number;
  name: string;
  sequence: number;
}

export interface BackwardEdges {
  /** Events of nodes, in pairs: whose gradient goes to whom. */
  source: number[];
  target: number[];
  /** The event of the node that an event is, or is the operator of. */
  nodeOf: Map<number, number>;
}

const known = new WeakMap<Profile, BackwardEdges>();

export function backwardEdges(profile: Profile): BackwardEdges {
  let made = known.get(profile);
  if (!made) known.set(profile, (made = edges(profile)));
  return made;
}

function edges(profile: Profile): BackwardEdges {
  const found: BackwardEdges = { source: [], target: [], nodeOf: new Map() };
  recordsOf(profile).forEach((record, process) => {
    const graphs = dataflowOf(record, "graphs").filter(isObject);
    if (!graphs.length) return;
    const ran = nodesOf(profile, process);
    for (const { event, inner } of ran) {
      found.nodeOf.set(event, event);
      if (inner >= 0) found.nodeOf.set(inner, event);
    }
    const begins = graphs.map((graph) => firstAt(ran, Number(graph.begin_ns) + movedOf(record)));
    graphs.forEach((graph, at) => {
      const rows = matched(graph, ran.slice(begins[at], begins[at + 1] ?? ran.length));
      for (const [from, to] of pairs(graph)) {
        const [source, target] = [rows.get(from), rows.get(to)];
        if (source === undefined || target === undefined) continue;
        found.source.push(source);
        found.target.push(target);
      }
    });
  });
  return found;
}

/** The first that began at a time or later. */
function firstAt(ran: readonly Ran[], time: number): number {
  let [low, high] = [0, ran.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ran[middle].begin >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Every node that the engine ran in a process, in the order in which they began. */
function nodesOf(profile: Profile, process: number): Ran[] {
  const { start_ns, duration_ns, kind, node, thread, sequence } = profile.tables.events;
  const operator = EventKindNames.indexOf("operator");
  const mine = profile.tables.threads.process;
  const open = new Map<number, Ran[]>(); // of each thread the nodes that still run
  const found: Ran[] = [];
  for (let event = 0; event < kind.length; event++) {
    if (kind[event] !== operator || thread[event] < 0 || mine[thread[event]] !== process) continue;
    const name = profile.name(node[event]);
    const begin = start_ns[event];
    if (name.startsWith(EVALUATE)) {
      const end = begin + Math.max(0, duration_ns[event]);
      const one = { begin, end, event, inner: -1, name: name.slice(EVALUATE.length), sequence: -1 };
      found.push(one);
      open.set(thread[event], [...(open.get(thread[event]) ?? []).filter((other) => other.end > begin), one]);
      continue;
    }
    for (const one of open.get(thread[event]) ?? []) {
      if (one.inner >= 0 || one.name !== name || begin >= one.end) continue;
      one.inner = event;
      one.sequence = sequence[event];
    }
  }
  return found;
}

function pairs(graph: Record<string, unknown>): [number, number][] {
  const flat = Array.isArray(graph.edges) ? (graph.edges as unknown[]).map(Number) : [];
  const made: [number, number][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) made.push([flat[i], flat[i + 1]]);
  return made;
}

/** The event of every node of a graph. Accumulations have no sequence number: the engine runs them right behind the node that
 * feeds them, in the order of its inputs. */
function matched(graph: Record<string, unknown>, ran: Ran[]): Map<number, number> {
  const byName = new Map<string, number[]>();
  const following = new Map<number, number[]>();
  const put = <K>(into: Map<K, number[]>, key: K, event: number) =>
    void (into.get(key)?.push(event) ?? into.set(key, [event]));
  let last = -1;
  for (const { event, name, sequence } of ran) {
    if (name.endsWith(ACCUMULATE)) put(following, last, event);
    else {
      put(byName, `${sequence} ${name}`, event);
      last = event;
    }
  }
  const listed = (Array.isArray(graph.nodes) ? (graph.nodes as unknown[]) : []).filter(Array.isArray);
  const names = new Map(listed.map(([number, name, sequence]) => [Number(number), [String(name), Number(sequence)]]));
  const found = new Map<number, number>();
  for (const [number, [name, sequence]] of names) {
    if (String(name).endsWith(ACCUMULATE)) continue;
    const event = byName.get(`${sequence} ${name}`)?.shift();
    if (event !== undefined) found.set(number, event);
  }
  for (const [from, to] of pairs(graph)) {
    const source = found.get(from);
    if (source === undefined || found.has(to) || !String(names.get(to)?.[0] ?? "").endsWith(ACCUMULATE)) continue;
    const event = following.get(source)?.shift();
    if (event !== undefined) found.set(to, event);
  }
  return found;
}
