// Spans of the timeline that somebody looks for: by a text, or because a finding is about their call path.

import type { NodeRow, Profile } from "./profile";
import { matcher, type Search } from "./search";
import { type Timeline } from "./timeline";

export interface Hits {
  is(span: number): boolean;
  /** In the order they began. */
  spans: Int32Array;
  /** What they last; what lies inside another that was found counts once, on each lane. */
  sum_ns: number;
}

/** Null for an empty text. Raises BadPattern. */
export function searched(profile: Profile, timeline: Timeline, search: Search, text: string): Hits | null {
  const frames = search.frames(text);
  if (!frames) return null;
  const matches = matcher(text.trim());
  const texts = timeline.texts.map(({ name }) => matches(name));
  return hits(timeline, (node) => (node < 0 ? texts[-1 - node] : frames[profile.frame[node]] === 1));
}

/** Everything at or below some rows of the tree. */
export function below(profile: Profile, timeline: Timeline, rows: readonly NodeRow[]): Hits {
  const inside = new Uint8Array(profile.size);
  for (const row of rows) if (row >= 0 && row < profile.size) inside[row] = 1;
  for (let row = 1; row < profile.size; row++) if (inside[profile.parent[row]]) inside[row] = 1;
  return hits(timeline, (node) => node >= 0 && inside[node] === 1);
}

function hits(timeline: Timeline, wanted: (node: number) => boolean): Hits {
  const { node, start, end } = timeline;
  const found: number[] = [];
  let sum_ns = 0;
  for (const lane of timeline.lanes) {
    const mine: number[] = [];
    for (const row of lane.rows) for (const span of row) if (wanted(node[span])) mine.push(span);
    mine.sort((a, b) => start[a] - start[b]);
    let until = -Infinity;
    for (const span of mine) {
      if (end[span] > until) sum_ns += end[span] - Math.max(until, start[span]);
      until = Math.max(until, end[span]);
    }
    found.push(...mine);
  }
  const spans = Int32Array.from(found).sort((a, b) => start[a] - start[b] || a - b);
  return { is: (span) => wanted(node[span]), spans, sum_ns };
}
