import { expect, test } from "vitest";
import { Coverage } from "./coverage";
import type { Timeline } from "./timeline";

test("shares of a stretch are those of the spans below it, however many there are", () => {
  // 15 ns of each 100 are of group 1, 84 of group 2, one is empty
  const start: number[] = [];
  const end: number[] = [];
  for (let i = 0; i < 10_000; i++) {
    start.push(100 * i, 100 * i + 15);
    end.push(100 * i + 15, 100 * i + 99);
  }
  const timeline = { start: Float64Array.from(start), end: Float64Array.from(end) } as Timeline;
  const row = Int32Array.from(start.keys());
  const coverage = new Coverage(timeline, row, (span) => 1 + (span % 2));
  const found = new Map<number, number>();
  coverage.shares(0, 1_000_000, (group, share) => found.set(group, share));
  expect([found.get(1), found.get(2)]).toEqual([0.15, 0.84]);
  found.clear();
  coverage.shares(10, 20, (group, share) => found.set(group, share));
  expect([found.get(1), found.get(2)]).toEqual([0.5, 0.5]);
  found.clear();
  coverage.shares(99, 100, (group, share) => found.set(group, share));
  expect(found.size).toBe(0);
});
