// Lanes that several ranks or processes have, side by side: the same thread or stream of each, in the order of the ranks.

import type { Profile } from "./profile";
import { processName, type Lane, type Timeline } from "./timeline";

/** Rows that a lane keeps beside those of other ranks. */
const MOST_ROWS = 6;

function roleOf(profile: Profile, lane: Lane): string {
  return lane.title.replace(`${processName(profile, lane.process)}, `, "");
}

/** What at least two processes have a lane for. */
export function rolesOf(profile: Profile, timeline: Timeline): string[] {
  const holders = new Map<string, Set<number>>();
  for (const lane of timeline.lanes) {
    const role = roleOf(profile, lane);
    holders.set(role, (holders.get(role) ?? new Set()).add(lane.process));
  }
  return [...holders].filter(([, processes]) => processes.size > 1).map(([role]) => role);
}

/** The lanes of one role; all where it is empty. */
export function ofRole(profile: Profile, timeline: Timeline, role: string): Timeline {
  if (!role) return timeline;
  const { rank } = profile.tables.processes;
  const lanes = timeline.lanes
    .filter((lane) => roleOf(profile, lane) === role)
    .sort((a, b) => rank[a.process] - rank[b.process] || a.process - b.process)
    .map((lane) => ({
      ...lane,
      title: processName(profile, lane.process),
      rows: lane.rows.slice(0, MOST_ROWS),
    }));
  return { ...timeline, lanes };
}
