// Ranks of a merged job that were found late: what each has measured stands in the file by itself, at the job's own nodes.

import { Profile } from "./profile";

/** The numbers of the ranks that a merged file holds by themselves. */
export function ranksAlone(profile: Profile): number[] {
  const { rank } = profile.tables.ranks;
  const rows = new Set(profile.tables.rank_metrics.rank);
  return [...rows]
    .map((row) => rank[row])
    .filter((number) => number >= 0)
    .sort((a, b) => a - b);
}

/** The job's tree with the measurements of one rank alone; rows of nodes mean the same. */
export function rankProfile(profile: Profile, number: number): Profile {
  const { rank_metrics: held, ranks } = profile.tables;
  const row = ranks.rank.indexOf(number);
  const mine = Uint32Array.from(held.rank.keys()).filter((i) => held.rank[i] === row);
  const chosen = <T extends { [i: number]: number }>(values: T): T =>
    (values.constructor as unknown as { from(rows: Uint32Array, of: (i: number) => number): T }).from(
      mine,
      (i) => values[i],
    );
  const metrics = {
    node: chosen(held.node),
    metric: chosen(held.metric),
    device: chosen(held.device),
    stream: chosen(held.stream),
    count: chosen(held.count),
    sum: chosen(held.sum),
    min: chosen(held.min),
    max: chosen(held.max),
    sum_squares: chosen(held.sum_squares),
  };
  return new Profile({ ...profile.tables, metrics }, profile.meta);
}

/** How many ranks the job's sums are of. */
export function ranksMeasured(profile: Profile): number {
  return profile.tables.ranks.process.reduce((sum, process) => sum + (process >= 0 ? 1 : 0), 0);
}

/** Of rows of the tree: what the rank has there, and what the others have on average. */
export function besideOthers(
  job: Profile,
  alone: Profile,
  metric: string,
  inverted: boolean,
): (rows: Iterable<number>) => { here: number; others: number } {
  const column = inverted ? "own" : "whole";
  const all = job.metrics.values(metric)[column];
  const mine = alone.metrics.values(metric)[column];
  const count = Math.max(1, ranksMeasured(job) - 1);
  return (rows) => {
    let [here, sum] = [0, 0];
    for (const row of rows) {
      here += mine[row];
      sum += all[row];
    }
    return { here, others: Math.max(0, sum - here) / count };
  };
}
