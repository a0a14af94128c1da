// Lanes that several ranks or processes have, side by side: the same thread or stream of each, in the order of the ranks.

import type { Profile } from "./profile";
import { EventKindNames } from "./schema.generated";
import type { Meetings } from "./meetings";
import { busyShare, processName, type Lane, type Timeline } from "./timeline";

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

/** The lane to begin with where ranks are compared: the stream at work longest, without devices the thread that steps. */
export function firstRole(profile: Profile, timeline: Timeline): string {
  const { rank } = profile.tables.processes;
  if (new Set(rank.filter((one) => one >= 0)).size < 2) return ""; // workers of one rank are not its equals
  const { kind, thread } = profile.tables.events;
  const steps = new Set(thread.filter((_, event) => EventKindNames[kind[event]] === "step"));
  const streams = timeline.lanes.filter((lane) => lane.kind === "stream");
  const busy = new Map<string, number>();
  for (const lane of streams.length
    ? streams
    : timeline.lanes.filter((one) => one.kind === "thread" && steps.has(one.of))) {
    const role = roleOf(profile, lane);
    busy.set(role, (busy.get(role) ?? 0) + busyShare(timeline, lane));
  }
  const shared = rolesOf(profile, timeline).filter((role) => busy.has(role));
  return shared.sort((a, b) => (busy.get(b) ?? 0) - (busy.get(a) ?? 0))[0] ?? "";
}

/** The lanes of one role, each saying how often its rank came last to a collective; all lanes where it is empty. */
export function ofRole(profile: Profile, timeline: Timeline, role: string, met: Meetings | null = null): Timeline {
  if (!role) return timeline;
  const { rank } = profile.tables.processes;
  const lanes = timeline.lanes
    .filter((lane) => roleOf(profile, lane) === role)
    .sort((a, b) => rank[a.process] - rank[b.process] || a.process - b.process)
    .map((lane) => ({
      ...lane,
      title: processName(profile, lane.process) + lastText(met, lane.process),
      rows: [...lane.rows.slice(0, MOST_ROWS), ...collectivesOf(timeline, lane, met)],
    }));
  return { ...timeline, lanes };
}

/** A row of the collectives that its rank took part in, where others carried them. */
function collectivesOf(timeline: Timeline, lane: Lane, met: Meetings | null): Int32Array[] {
  if (!met || lane.kind !== "thread") return [];
  const own = new Set(lane.rows.flatMap((row) => [...row]));
  const row: number[] = [];
  for (const event of met.events.get(lane.process) ?? []) {
    const span = timeline.spanOf[event];
    if (span < 0 || own.has(span)) return [];
    if (!row.length || timeline.start[span] >= timeline.end[row[row.length - 1]]) row.push(span);
  }
  return row.length ? [Int32Array.from(row)] : [];
}

function lastText(met: Meetings | null, process: number): string {
  const last = met?.last.get(process) ?? 0;
  return met && last ? ` · last to ${last} of ${met.count} collectives` : "";
}
