import { expect, test } from "vitest";
import type { Comparison } from "./comparison";
import { diffOf, type ComparedTree } from "./diff";
import { drawn } from "./testing/drawing";

const text = (values: ArrayLike<number> & { buffer: ArrayBufferLike }) =>
  btoa(String.fromCharCode(...new Uint8Array(values.buffer)));
const rows = (...values: number[]) => text(Int32Array.from(values));
const column = (...values: number[]) => text(Float64Array.from(values));

const side = (name: string, operator: string) =>
  drawn(`
  process train.py
    thread main
      python ${name} @ /a/t.py:1
        operator mm | time=100/2 call_time=100/2
        operator ${operator} | time=10/1 call_time=10/1
`);
/** Rows: root, process, thread, function, mm, relu of before, gelu of after. */
const tree: ComparedTree = {
  parent: rows(-1, 0, 1, 2, 3, 3, 3),
  rows: [rows(0, 1, 2, 3, 4, 5), rows(0, 1, 2, 3, 4, 6)],
  renamed: [[3, "criterion"]],
  metrics: {
    time: [column(0, 0, 0, 0, 50, 5, 0), column(0, 0, 0, 0, 60, 0, 7)],
    calls: [column(0, 0, 0, 0, 1, 0.5, 0), column(0, 0, 0, 0, 1, 0, 1)],
    of_a_newer_release: [column(0, 0, 0, 0, 0, 0, 1), column(0, 0, 0, 0, 0, 0, 1)],
  },
};

test("rows and figures are Python's, names and places those of the profiles", async () => {
  const [before, after] = [await side("loss", "relu"), await side("criterion", "gelu漢")];
  const diff = diffOf(before, after, {} as Comparison, tree);
  const names = Array.from({ length: 7 }, (_, row) => diff.after.name(row));
  expect(names.slice(2)).toEqual(["main", "loss → criterion", "mm", "relu", "gelu漢"]);
  expect(diff.metrics.sort()).toEqual(["calls", "time"]);
  expect([diff.before, diff.after].map((one) => one.metrics.values("time").whole[3])).toEqual([55, 67]);
  expect([diff.before, diff.after].map((one) => one.metrics.values("calls").whole[0])).toEqual([1.5, 2]);
  expect(diff.rowOf[1][5]).toBe(6);
  expect(diff.before.line(diff.before.frame[3])).toBe(1);
});
