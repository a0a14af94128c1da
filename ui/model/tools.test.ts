import { describe, expect, it } from "vitest";
import { barColumn, heatCell, type HeatOutput } from "./tools";

const heat: HeatOutput = {
  kind: "heat",
  name: "accesses",
  what: "block by launches",
  rows: ["weights #0", "input #1"],
  columns: ["launch 0", "launch 10", "launch 20", "launch 30"],
  unit: "elements",
  cells: [
    [1, 5000, 3, 4],
    [0, 0, 7, 0],
  ],
};

describe("a cell of a heat map", () => {
  it("says its row, its column and its value with its unit", () => {
    expect(heatCell(heat, 0, 1, 4)).toEqual({ value: 5000, text: "weights #0, launch 10: 5,000 elements" });
    expect(heatCell(heat, 1, 3, 4)).toEqual({ value: 0, text: "input #1, launch 30: 0 elements" });
    expect(heatCell({ ...heat, unit: "bytes" }, 0, 1, 4).text).toBe("weights #0, launch 10: 4.88 KiB");
  });
  it("stands for several columns where there is no room for all", () => {
    expect(heatCell(heat, 0, 0, 2)).toEqual({
      value: 5000,
      text: "weights #0, launch 0 to launch 10: at most 5,000 elements",
    });
    expect(heatCell(heat, 1, 1, 2).value).toBe(7);
  });
  it("does without names and rows that a file does not have", () => {
    expect(heatCell({ ...heat, rows: [], columns: [], cells: [[2]] }, 0, 0, 1).text).toBe(": 2 elements");
    expect(heatCell({ ...heat, cells: [] }, 3, 0, 1).value).toBe(0);
  });
});

describe("the column that bars are drawn of", () => {
  const columns = ["kernel", "launch", "whole", "time"].map((name) => ({ name, unit: name === "time" ? "ns" : "" }));
  const path = { path: ["a.py:1"] };
  it("is the one that the tool has sorted by", () => {
    const rows = [
      ["mm", 7, 300, 5],
      ["add", 9, 200, 9],
      ["mm", 8, 100, 1],
    ];
    expect(barColumn(columns, rows)).toBe(2);
  });
  it("is else the first with a unit", () => {
    const rows = [
      ["mm", 7, 1, 5],
      ["add", 9, 2, 9],
      ["mm", 8, 3, 1],
    ];
    expect(barColumn(columns, rows)).toBe(3);
  });
  it("is none where there is little to compare, or nothing to draw", () => {
    expect(
      barColumn(columns, [
        ["mm", 9, 2, 5],
        ["add", 7, 1, 9],
      ]),
    ).toBe(-1);
    expect(barColumn(columns, Array(3).fill(["mm", 0, 0, 0]))).toBe(-1);
    expect(barColumn(columns, Array(3).fill([path, "a", null, -1]))).toBe(-1);
  });
});
