// Every operator by name, the largest exclusive time first. Device work and memory are booked on the nearest operator above
// them; a call that was the whole of a call of the same name above it counts once. As python/leadline/analysis/breakdown.py.

import type { Profile } from "../profile";
import type { OperatorRow } from "../report";
import { scopesOf } from "../scopes";
import { eachMeasurement, Spread, sums } from "./rows";

export function operators(profile: Profile): OperatorRow[] {
  const { inner } = scopesOf(profile);
  const { sum, count, min, max, sum_squares: squares } = profile.tables.metrics;
  const groups = new Map<number, { spread: Spread; gpu: number; alloc: number; called: boolean }>();
  const names = profile.tables.frames.name;
  const group = (node: number) => {
    const name = names[profile.frame[node]];
    let made = groups.get(name);
    if (!made) groups.set(name, (made = { spread: new Spread(), gpu: 0, alloc: 0, called: false }));
    return made;
  };
  const own = sums(profile, "time");
  const gpu = sums(profile, "gpu_time");
  const alloc = sums(profile, "alloc_bytes");
  for (let node = 0; node < profile.size; node++) {
    if (inner[node] < 0) continue;
    if (inner[node] === node) {
      const one = group(node);
      one.spread.self += own[node];
      one.called = true;
    }
    if (gpu[node] || alloc[node]) {
      const holder = group(inner[node]);
      holder.gpu += gpu[node];
      holder.alloc += alloc[node];
    }
  }
  const repeats = new Map<number, [number, number, number]>();
  eachMeasurement(profile, "repeated_call_time", (node, row) =>
    repeats.set(node, [count[row], sum[row], squares[row]]),
  );
  eachMeasurement(profile, "call_time", (node, row) => {
    if (inner[node] !== node) return;
    const [calls, time, square] = repeats.get(node) ?? [0, 0, 0];
    if (count[row] - calls > 0)
      group(node).spread.add(
        count[row] - calls,
        sum[row] - time,
        min[row],
        max[row],
        Math.max(0, squares[row] - square),
      );
  });
  const made: OperatorRow[] = [];
  for (const [name, one] of groups)
    if (one.called || one.gpu || one.alloc)
      made.push({
        name: profile.text(name),
        count: one.spread.count,
        time_ns: one.spread.distribution(),
        gpu_time_ns: one.gpu,
        alloc_bytes: one.alloc,
      });
  return made.sort((a, b) => b.time_ns.self - a.time_ns.self || (a.name < b.name ? -1 : 1));
}
