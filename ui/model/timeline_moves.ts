// From one span of the timeline to the next, as keys go: along a row, to the row above or below, to another lane.

import { firstStartingAt, type Timeline } from "./timeline";

export type Move = "before" | "after" | "up" | "down" | "laneUp" | "laneDown";

export interface SpanPlace {
  lane: number;
  /** Row of the lane. */
  depth: number;
  /** Place in the row. */
  at: number;
}

/** Spans of a row have rising numbers. */
function indexOfSpan(row: Int32Array, span: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle] >= span) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function placeOfSpan({ lanes }: Timeline, span: number): SpanPlace | null {
  for (let lane = 0; lane < lanes.length; lane++)
    for (let depth = 0; depth < lanes[lane].rows.length; depth++) {
      const row = lanes[lane].rows[depth];
      const at = indexOfSpan(row, span);
      if (row[at] === span) return { lane, depth, at };
    }
  return null;
}

/** The span that a key leads to from `span`, -1 where there is none; from nothing to the first lane, at `time`. */
export function moved(timeline: Timeline, span: number, move: Move, time: number): number {
  const { lanes } = timeline;
  const place = span >= 0 ? placeOfSpan(timeline, span) : null;
  if (!place) return nearest(timeline, lanes[0]?.rows[0], time);
  const { lane, depth, at } = place;
  if (move === "before" || move === "after") return lanes[lane].rows[depth][at + (move === "after" ? 1 : -1)] ?? -1;
  const began = timeline.start[span];
  const inLane = lanes[lane].rows[depth + (move === "up" ? -1 : 1)];
  if ((move === "up" || move === "down") && inLane) return nearest(timeline, inLane, began);
  const next = lanes[lane + (move === "up" || move === "laneUp" ? -1 : 1)];
  return nearest(timeline, move === "up" ? next?.rows[next.rows.length - 1] : next?.rows[0], began);
}

/** The span of a row that runs at a time, else the one that is nearest to it. */
function nearest(timeline: Timeline, row: Int32Array | undefined, time: number): number {
  if (!row?.length) return -1;
  const { start, end } = timeline;
  const after = firstStartingAt(timeline, row, time, 0);
  if (after === 0) return row[0];
  const before = row[after - 1];
  if (after === row.length) return before;
  return Math.max(0, time - end[before]) <= start[row[after]] - time ? before : row[after];
}
