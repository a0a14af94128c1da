// Sums of measurements as the tables show them.

import type { Profile } from "../profile";
import type { Distribution } from "../report";
import { MetricKindNames, type MetricKind } from "../schema.generated";

/** Adds measurements up to a distribution. */
export class Spread {
  count = 0;
  sum = 0;
  self = 0;
  min = Infinity;
  max = -Infinity;
  private squares = 0;

  add(count: number, sum: number, min: number, max: number, squares: number): void {
    this.count += count;
    this.sum += sum;
    this.squares += squares;
    if (count > 0 && min < this.min) this.min = min;
    if (count > 0 && max > this.max) this.max = max;
  }

  distribution(): Distribution {
    if (this.count <= 0) return { sum: 0, self: this.self, min: 0, max: 0, mean: 0, std: 0 };
    const mean = this.sum / this.count;
    const variance = this.squares / this.count - mean * mean;
    const std = variance > 0 && Number.isFinite(variance) ? Math.sqrt(variance) : 0;
    return { sum: this.sum, self: this.self, min: this.min, max: this.max, mean, std };
  }
}

/** Calls act(node, row) for every row of the table `metrics` that measured this metric. */
export function eachMeasurement(profile: Profile, metric: MetricKind, act: (node: number, row: number) => void): void {
  const wanted = MetricKindNames.indexOf(metric);
  const { metric: kind, node, count } = profile.tables.metrics;
  for (let row = 0; row < node.length; row++) if (kind[row] === wanted && count[row] > 0) act(node[row], row);
}

/** Signed sum of one metric at every node, all devices and streams. */
export function sums(profile: Profile, metric: MetricKind): Float64Array {
  const made = new Float64Array(profile.size);
  const { sum } = profile.tables.metrics;
  eachMeasurement(profile, metric, (node, row) => (made[node] += sum[row]));
  return made;
}
