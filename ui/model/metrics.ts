// Measurements by node: for each metric a column of exclusive values and one with everything below, made when first asked.

import { inMakersWords } from "./makers";
import type { NodeRow, Profile } from "./profile";
import { MetricInfo, MetricKindNames, type MetricKind } from "./schema.generated";

export const CALLS = "calls";

export interface MetricDescription {
  name: string;
  unit: string;
  doc: string;
}

/** `own`: what was measured at the very node; `whole`: there and below. */
export interface Values {
  own: Float64Array;
  whole: Float64Array;
}

export interface Stat {
  count: number;
  sum: number;
  min: number;
  max: number;
  mean: number;
  /** Standard deviation of the population. */
  std: number;
}

export class Metrics {
  private readonly columns = new Map<string, Values>();
  private rowsOfNode: { start: Int32Array; rows: Int32Array } | null = null;
  private additive: MetricDescription[] | null = null;

  constructor(private readonly profile: Profile) {}

  /** Metrics that boxes may be as wide as: the additive ones with a measurement, and the calls of operators. */
  get drawn(): MetricDescription[] {
    if (this.additive) return this.additive;
    const { metric, count } = this.profile.tables.metrics;
    const present = new Set<number>();
    for (let i = 0; i < metric.length; i++) if (count[i] > 0) present.add(metric[i]);
    const found = MetricKindNames.filter((name, i) => present.has(i) && MetricInfo[name].additive)
      .map((name) => ({ name: name as string, unit: MetricInfo[name].unit, doc: this.doc(name) }))
      .filter(({ name }) => this.values(name).whole[0] > 0);
    if (present.has(MetricKindNames.indexOf("call_time")) && this.values(CALLS).whole[0] > 0)
      found.push({ name: CALLS, unit: "1", doc: "calls of operators and regions" });
    return (this.additive = found);
  }

  describe(name: string): MetricDescription | undefined {
    return this.drawn.find((metric) => metric.name === name);
  }

  /** What a metric is, in the words of the devices' maker. */
  doc(name: MetricKind): string {
    return inMakersWords(this.profile, MetricInfo[name].doc);
  }

  /** The metric a view starts with. */
  get main(): string {
    const names = this.drawn.map((metric) => metric.name);
    return ["gpu_time", "time"].find((name) => names.includes(name)) ?? names[0] ?? "time";
  }

  values(name: string): Values {
    const known = this.columns.get(name);
    if (known) return known;
    const own = name === CALLS ? this.gathered("call_time", "count") : this.gathered(name as MetricKind, "sum");
    const made = { own, whole: rolledUp(own, this.profile.parent) };
    this.columns.set(name, made);
    return made;
  }

  /** Own values may not be below zero where they are drawn. */
  private gathered(name: MetricKind, column: "sum" | "count"): Float64Array {
    const { node, metric, count } = this.profile.tables.metrics;
    const values = this.profile.tables.metrics[column];
    const wanted = MetricKindNames.indexOf(name);
    const own = new Float64Array(this.profile.size);
    if (name === "peak_live_bytes") return this.largestPeak(wanted);
    for (let i = 0; i < node.length; i++) if (metric[i] === wanted && count[i] !== 0) own[node[i]] += values[i];
    for (let row = 0; row < own.length; row++) if (own[row] < 0) own[row] = 0;
    return own;
  }

  /** Processes and devices peak at moments of their own: the values of the one with most, and of no other. */
  private largestPeak(wanted: number): Float64Array {
    const { node, metric, count, device, sum } = this.profile.tables.metrics;
    const process = new Int32Array(this.profile.size);
    const isProcess = new Set(this.profile.tables.processes.node);
    for (let row = 1; row < process.length; row++) {
      process[row] = isProcess.has(row) ? row : process[this.profile.parent[row]];
    }
    const byPeak = new Map<number, Float64Array>();
    const totals = new Map<number, number>();
    for (let i = 0; i < node.length; i++) {
      if (metric[i] !== wanted || count[i] === 0 || !(sum[i] > 0)) continue;
      const key = process[node[i]] * 65536 + device[i] + 32768;
      let own = byPeak.get(key);
      if (!own) byPeak.set(key, (own = new Float64Array(this.profile.size)));
      own[node[i]] += sum[i];
      totals.set(key, (totals.get(key) ?? 0) + sum[i]);
    }
    let largest = -1;
    for (const [key, total] of totals) if (total > (totals.get(largest) ?? 0)) largest = key;
    return byPeak.get(largest) ?? new Float64Array(this.profile.size);
  }

  /** Rows of the table `metrics` that belong to a node. */
  rows(row: NodeRow): Int32Array {
    if (!this.rowsOfNode) {
      const { node } = this.profile.tables.metrics;
      const start = new Int32Array(this.profile.size + 1);
      for (let i = 0; i < node.length; i++) start[node[i] + 1]++;
      for (let i = 0; i < this.profile.size; i++) start[i + 1] += start[i];
      const next = start.slice();
      const rows = new Int32Array(node.length);
      for (let i = 0; i < node.length; i++) rows[next[node[i]]++] = i;
      this.rowsOfNode = { start, rows };
    }
    const { start, rows } = this.rowsOfNode;
    return rows.subarray(start[row], start[row + 1]);
  }

  /** All measurements of one metric at several nodes as one set, by the metric's name; empty where nothing was measured. */
  stats(nodes: Iterable<NodeRow>): Map<MetricKind, Stat> {
    const table = this.profile.tables.metrics;
    const sums = new Map<MetricKind, Stat & { squares: number }>();
    for (const node of nodes)
      for (const row of this.rows(node)) {
        const name = MetricKindNames[table.metric[row]];
        if (!name || !table.count[row]) continue;
        let one = sums.get(name);
        if (!one) {
          one = { count: 0, sum: 0, min: Infinity, max: -Infinity, mean: 0, std: 0, squares: 0 };
          sums.set(name, one);
        }
        one.count += table.count[row];
        one.sum += table.sum[row];
        one.min = Math.min(one.min, table.min[row]);
        one.max = Math.max(one.max, table.max[row]);
        one.squares += table.sum_squares[row];
      }
    for (const one of sums.values()) {
      one.mean = one.sum / one.count;
      const variance = one.squares / one.count - one.mean * one.mean;
      one.std = variance > 0 && Number.isFinite(variance) ? Math.sqrt(variance) : 0;
    }
    return sums;
  }
}

/** Every node's value with those of everything below it; a parent stands before its children. */
export function rolledUp(own: Float64Array, parent: Int32Array): Float64Array {
  const whole = own.slice();
  for (let row = whole.length - 1; row > 0; row--) whole[parent[row]] += whole[row];
  return whole;
}
