import { expect, test } from "vitest";
import { deviations, heatColumns, quantityName, type Ranks } from "./ranks";

const ranks = {
  names: ["time forward", "communication", "wall", "peak"],
  rows: [
    { rank: 0, host: "a", role: {}, status: "whole", values: [100, 50, 200, 7] },
    { rank: 1, host: "a", role: {}, status: "whole", values: [150, 0, 200, 7] },
    { rank: 2, host: "b", role: {}, status: "whole", values: [100, 50, 200, 7] },
  ],
} as unknown as Ranks;

test("a cell says how far a rank is from the median of its column", () => {
  const columns = heatColumns(ranks);
  expect(columns).toEqual([0, 1]);
  expect([...deviations(ranks, columns)]).toEqual([0, 0, 0.5, -1, 0, 0]);
});

test("a column in which most ranks have nothing shows those that have something", () => {
  const one = { ...ranks, rows: ranks.rows.map((row, at) => ({ ...row, values: [at ? 0 : 30, 0, 200, 7] })) };
  expect([...deviations(one, heatColumns(one))]).toEqual([1, 0, 0]);
});

test("quantities have names for a person", () => {
  expect(["time forward", "gpu_time other", "time other", "peak"].map(quantityName)).toEqual([
    "forward",
    "GPU other",
    "operators outside phases",
    "memory at the peak",
  ]);
});
