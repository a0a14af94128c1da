import { expect, test } from "vitest";
import { storedReport } from "./stored";
import { drawn } from "./testing/drawing";

const TREE = "operator mm | time=5 call_time=5";
const format = { name: "leadline-report", version: 1 };

test("what the file keeps is shown, under the name that it has now", async () => {
  const saved = {
    format,
    path_metric: "gpu_time",
    meta: { program: "a.py", file: "old", python: "3.12" },
    operator_calls: 7,
  };
  const report = storedReport(await drawn(TREE, { report: saved }), "new.leadline");
  expect(report.known).toBe(true);
  expect([report.path_metric, report.operator_calls]).toEqual(["gpu_time", 7]);
  expect([report.meta.program, report.meta.python, report.meta.file]).toEqual(["a.py", "3.12", "new.leadline"]);
  expect(report.tables.operators).toEqual([]);
});

test("without one the file's own facts are left", async () => {
  const report = storedReport(await drawn(TREE, { program: { argv: ["train.py", "a b"] } }), "x.leadline");
  expect(report.known).toBe(false);
  expect(report.meta.program).toBe("train.py 'a b'");
});

test("parts of other types are absent", async () => {
  const odd = {
    format,
    meta: { frameworks: 3, program: ["x"] },
    totals: [],
    cost: { percent: "much" },
    tables: { lines: 5 },
  };
  const report = storedReport(await drawn(TREE, { report: odd }), "x");
  expect(report.meta.frameworks).toEqual([]);
  expect(report.totals).toEqual({});
  expect(report.cost.percent).toBe(null);
  expect(report.tables.lines).toEqual([]);
  for (const other of [{ version: 9 }, null, "text"])
    expect(storedReport(await drawn(TREE, { report: { format: other } }), "x").known).toBe(false);
});
