// The same call path in another file or a later look at a run, where rows are numbered anew: by what its frames are.

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

/** A path for an address: a short number of each frame, from the root on. */
export function pathText(profile: Profile, row: NodeRow): string {
  const path: string[] = [];
  for (let at = row; at > 0; at = profile.parent[at]) path.push(frameMark(profile, at));
  return path.reverse().join(".");
}

/** The row that such a text names, or the longest part of its path that is there; null where nothing of it is. */
export function rowOfPath(profile: Profile, text: string): NodeRow | null {
  let found = 0;
  for (const wanted of text.split(".", MOST_DEPTH)) {
    const next = childrenOf(profile, found).find((child) => frameMark(profile, child) === wanted);
    if (next === undefined) break;
    found = next;
  }
  return found || null;
}

const MOST_DEPTH = 2000;
const marks = new WeakMap<Profile, Map<number, string>>();

/** Of a frame in a tree: FNV-1a of its kind, name and place. A process or thread is known by its name only. */
function frameMark(profile: Profile, row: NodeRow): string {
  let known = marks.get(profile);
  if (!known) marks.set(profile, (known = new Map()));
  const frame = profile.frame[row];
  let mark = known.get(frame);
  if (mark === undefined) {
    const text = ["process", "thread"].includes(profile.kindOfFrame(frame))
      ? profile.name(row)
      : frameText(profile, row);
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    known.set(frame, (mark = (hash >>> 0).toString(36)));
  }
  return mark;
}

function childrenOf(profile: Profile, row: NodeRow): NodeRow[] {
  return [...profile.childRows.subarray(profile.childStart[row], profile.childStart[row + 1])];
}

function frameText(profile: Profile, row: NodeRow): string {
  const frame = profile.frame[row];
  const texts = (["name", "file", "module", "detail"] as const).map((column) => profile.frameText(column, frame));
  return JSON.stringify([profile.kindOfFrame(frame), profile.line(frame), ...texts]);
}
