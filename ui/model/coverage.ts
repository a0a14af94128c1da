// How much of a stretch of time the spans of one row cover, by group (their colour): sums from the beginning and two searches,
// so a pixel over ten thousand spans costs what one over two does.

import { firstEndingAfter, type Timeline } from "./timeline";

export class Coverage {
  /** Of each group its spans in order, and how long those before each last. */
  private readonly groups = new Map<number, { row: Int32Array; before: Float64Array }>();

  constructor(
    private readonly timeline: Timeline,
    row: Int32Array,
    groupOf: (span: number) => number,
  ) {
    const lists = new Map<number, number[]>();
    for (const span of row) {
      const group = groupOf(span);
      const list = lists.get(group);
      if (list) list.push(span);
      else lists.set(group, [span]);
    }
    for (const [group, list] of lists) {
      const before = new Float64Array(list.length + 1);
      list.forEach((span, i) => (before[i + 1] = before[i] + timeline.end[span] - timeline.start[span]));
      this.groups.set(group, { row: Int32Array.from(list), before });
    }
  }

  /** Calls `each` with every group that covers part of [from, to), and which share of it. */
  shares(from: number, to: number, each: (group: number, share: number) => void): void {
    for (const [group, { row, before }] of this.groups) {
      const covered = this.until(row, before, to) - this.until(row, before, from);
      if (covered > 0) each(group, covered / (to - from));
    }
  }

  /** How long the spans last up to `time`. */
  private until(row: Int32Array, before: Float64Array, time: number): number {
    const at = firstEndingAfter(this.timeline, row, time);
    const open = at < row.length ? Math.max(0, time - this.timeline.start[row[at]]) : 0;
    return before[at] + open;
  }
}
