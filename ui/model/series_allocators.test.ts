// What an allocator reserved over the window, beside what was in use of it.

import { expect, test } from "vitest";
import { chartsOf } from "./series";
import { drawn, type EventRow } from "./testing/drawing";

const TREE = `
  process a.py
    thread main
      operator mm
        kernel sgemm
`;
const ROWS: EventRow[] = [
  [1000, 10, "operator", 3, 0, -1, -1, 1, -1, -1, 1],
  [1010, 90, "kernel", 4, -1, 0, 7, 1, -1, -1, 1],
];
const history = (values: object, device = 0) => ({
  device,
  name: "torch's allocator",
  time_ns: [1000, 1050, 1090],
  values,
});
const charts = async (...allocators: unknown[]) =>
  chartsOf(await drawn(TREE, { processes: [{ pid: 1, dataflow: { allocators } }] }, ROWS)).filter(({ title }) =>
    title.startsWith("Reserved"),
  );

test("reserved stands upon what is in use", async () => {
  const [chart] = await charts(history({ "bytes reserved": [100, 200, 200], "bytes in use": [60, 150, 90] }));
  expect(chart).toMatchObject({ title: "Reserved on GPU", x: [0, 50, 90], stacked: true, unit: "bytes" });
  expect(chart.lines).toEqual([
    { name: "in use", values: [60, 150, 90] },
    { name: "free", values: [40, 50, 110] },
  ]);
});

test("someone else's history is no trouble", async () => {
  for (const odd of [7, null, {}, history({}), history({ "bytes reserved": [1] }), { time_ns: 3, values: {} }])
    expect(await charts(odd)).toEqual([]);
});
