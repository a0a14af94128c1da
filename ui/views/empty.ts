// What is not there, and why: tabs without content are greyed with the reason.

import type { Profile } from "../model/profile";
import { toolResults } from "../model/tools";

/** Pages without content, with the reason: their tabs are greyed. */
export function emptyPages(profile: Profile, files: number): Record<string, string> {
  const made: Record<string, string> = {};
  const { events, frames } = profile.tables;
  if (!events.start_ns.length)
    made.timeline = "No trace window was recorded: durations are known, the times of events are not";
  if (!frames.kind.some((_, frame) => profile.kindOfFrame(frame) === "python" && profile.line(frame) > 0))
    made.source = "No Python line is known";
  if (files < 2) made.diff = "One profile is open; compare it with another";
  return made;
}

/** Tables without rows, with the reason. */
export function emptyTables(profile: Profile): Record<string, string> {
  const has = (metric: string) => profile.metrics.describe(metric) !== undefined;
  const kinds = new Set<string>();
  profile.tables.frames.kind.forEach((_, frame) => kinds.add(profile.kindOfFrame(frame)));
  const made: Record<string, string> = {};
  if (!has("gpu_time")) made.kernels = made.collectives = "No device was measured";
  else if (!kinds.has("collective")) made.collectives = "No collective ran on a device";
  if (!kinds.has("module")) made.modules = "No module was seen";
  if (!kinds.has("python")) made.lines = "No Python line is known";
  if (!has("alloc_bytes") && !has("peak_live_bytes")) made.memory = "Memory was not measured";
  if (profile.tables.processes.pid.length < 2 && !profile.tables.ranks.rank.length)
    made.ranks = "One process was measured";
  if (!toolResults(profile).length) made.tools = "No event tool ran";
  return made;
}
