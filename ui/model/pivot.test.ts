import { expect, test } from "vitest";
import { pivot } from "./pivot";
import { drawn } from "./testing/drawing";

const TREE = `
  process a.py
    thread Main
      python main @ /u/t.py:3
        module h.0 [Block]
          operator mm | time=5 call_time=5
            kernel gemm | gpu_time=40
        module h.1 [Block]
          operator mm | time=7 call_time=7
      python main @ /u/t.py:4
        operator relu | time=2 call_time=2
`;

test("groups add up to the whole, whatever they are grouped by", async () => {
  const profile = await drawn(TREE);
  const rows = (...by: Parameters<typeof pivot>[1]) =>
    pivot(profile, by)
      .map((row) => [...row.keys, row.time_ns, row.gpu_ns].join(" "))
      .sort();
  expect(rows("name")).toEqual(["gemm 0 40", "mm 12 0", "relu 2 0"]);
  expect(rows("class", "operator")).toEqual([" relu 2 0", "Block mm 12 40"]);
  expect(rows("line")).toEqual(["t.py:3 12 40", "t.py:4 2 0"]);
  expect(rows("module", "kind")).toEqual([" operator 2 0", "h.* kernel 0 40", "h.* operator 12 0"]);
  expect(rows()).toEqual(["14 40"]);
});
