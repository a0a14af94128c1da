// What each process said about itself (`meta.processes`), by row of the table `processes`. The rules of
// python/leadline/profiles/lineage.py: pids come again, so among records of one pid a row has the one that began nearest.

import type { Profile } from "./profile";
import { isObject } from "./reader";

const MOST_PAIRS = 1_000_000;

export type ProcessRecord = Record<string, unknown>;

/** Null where a process left none. */
export function recordsOf(profile: Profile): (ProcessRecord | null)[] {
  const { pid, start_ns: starts } = profile.tables.processes;
  const records = profile.meta.processes.filter(isObject);
  const byPid = new Map<number, number[]>();
  records.forEach((record, at) => {
    const same = byPid.get(Number(record.pid));
    if (same) same.push(at);
    else byPid.set(Number(record.pid), [at]);
  });
  const pairs: [far: number, row: number, at: number][] = [];
  for (let row = 0; row < pid.length; row++)
    for (const at of byPid.get(pid[row]) ?? []) {
      if (pairs.length >= MOST_PAIRS) break; // no job gives one pid so often
      pairs.push([Math.abs(starts[row] - number(records[at].started_at_ns)), row, at]);
    }
  pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const found = new Array<ProcessRecord | null>(pid.length).fill(null);
  const taken = new Set<number>();
  for (const [, row, at] of pairs)
    if (!found[row] && !taken.has(at)) {
      taken.add(at);
      found[row] = records[at];
    }
  return found;
}

/** What a process said of the way of its data in the window: a list by name, empty where there is none. */
export function dataflowOf(record: ProcessRecord | null, name: string): unknown[] {
  const told = record && isObject(record.dataflow) ? record.dataflow[name] : null;
  return Array.isArray(told) ? (told as unknown[]) : [];
}

/** By how much its events were moved from what its own clock showed, to lie on one clock with others. */
export function movedOf(record: ProcessRecord | null): number {
  return record && isObject(record.clock) ? number(record.clock.moved_ns) : 0;
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
