// The same call path in a later look at a run: rows are numbered anew in each.

import type { NodeRow, Profile } from "./profile";

/** The row of `later` whose path has the same frames as that of `row`, or of the longest part of it that is there. */
export function samePath(profile: Profile, row: NodeRow, later: Profile): NodeRow {
  const path: string[] = [];
  for (let at = row; at > 0; at = profile.parent[at]) path.push(frameText(profile, at));
  let found = 0;
  for (const wanted of path.reverse()) {
    const next = childrenOf(later, found).find((child) => frameText(later, child) === wanted);
    if (next === undefined) break;
    found = next;
  }
  return found;
}

function childrenOf(profile: Profile, row: NodeRow): NodeRow[] {
  return [...profile.childRows.subarray(profile.childStart[row], profile.childStart[row + 1])];
}

function frameText(profile: Profile, row: NodeRow): string {
  const frame = profile.frame[row];
  const texts = (["name", "file", "module", "detail"] as const).map((column) => profile.frameText(column, frame));
  return JSON.stringify([profile.kindOfFrame(frame), profile.line(frame), ...texts]);
}
