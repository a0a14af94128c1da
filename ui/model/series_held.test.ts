// Records of loaders and of tools as a process leaves them in, their curves and tables out.

import { expect, test } from "vitest";
import { chartsOf } from "./series";
import { drawn, type EventRow } from "./testing/drawing";
import { cellNode, cellText, toolResults } from "./tools";

const TREE = `
  process a.py
    thread Main
      phase forward
        operator linear
      phase optimizer
        operator add
`;
const STEPS: EventRow[] = [
  [100, 50, "operator", 4, 0, -1, -1, 0, -1, -1, 1],
  [900, 100, "operator", 6, 0, -1, -1, 0, -1, -1, 1],
];

test("batches of a loader are asked for, ready and used", async () => {
  // [loader, index, worker, queued, received, wanted, used]
  const batches = [
    [0, 0, 7, 110, 300, 200, 310],
    [0, 1, 7, 120, 350, 400, 410],
    [0, "bad", 7, 1, 2, 3, 4],
  ];
  const profile = await drawn(TREE, { processes: [{ pid: 1, dataflow: { batches } }, "nonsense"] }, STEPS);
  const chart = chartsOf(profile).find(({ title }) => title.startsWith("Queue of data loader"));
  expect(chart?.x).toEqual([10, 20, 200, 210, 250, 310]);
  expect(chart?.lines).toEqual([
    { name: "asked for", values: [1, 2, 2, 1, 1, 0] },
    { name: "ready", values: [0, 0, 1, 0, 1, 0] },
  ]);
});

test("memory stands by the phase that allocated it", async () => {
  const profile = await drawn(TREE, {}, [
    [100, 0, "allocate", 4, 0, -1, -1, 0, -1, -1, 1],
    [200, 0, "allocate", 6, 0, -1, -1, 0, -1, -1, 1],
    [300, 0, "allocate", 6, 0, -1, -1, 0, -1, -1, 1],
    [400, 0, "allocate", 6, 0, -1, -1, 0, -1, -1, 1],
  ]);
  profile.tables.events.bytes.set([64, 32, -64, -999]);
  const chart = chartsOf(profile).find(({ title }) => title.startsWith("Live tensor memory by phase"));
  expect(chart?.x).toEqual([0, 100, 200]);
  expect(chart?.lines).toEqual([
    { name: "forward", values: [64, 64, 0] },
    { name: "optimizer", values: [0, 32, 32] },
  ]);
});

test("what tools found is shown as far as it makes sense", async () => {
  const tools = [
    {
      tool: "hotness",
      backends: ["declared"],
      lost: { rows: 3 },
      outputs: [
        { kind: "table", name: "t", columns: [{ name: "where", unit: "" }], rows: [[{ short: "a.py:3", node: 4 }], 7] },
        { kind: "heat", name: "h", cells: [[1, null], "x"], rows: ["r"], row_name: "block", column_name: "time" },
        { kind: "hologram", name: "?" },
        null,
      ],
    },
    "nonsense",
  ];
  const [result, ...more] = toolResults(await drawn(TREE, { processes: [{ pid: 1, tools }] }, STEPS));
  expect(more).toEqual([]);
  expect(result.note).toBe("backend declared");
  expect(result.warnings).toEqual(["Not seen: 3 rows; sums are lower bounds."]);
  expect(result.outputs.map((output) => output.kind)).toEqual(["table", "heat", "text"]);
  expect(result.outputs[1]).toMatchObject({ what: "block by time", cells: [[1, 0], []] });
  const cell = { short: "a.py:3", node: 4 };
  expect([cellText(cell, ""), cellNode(cell, 7), cellNode({ node: 99 }, 7)]).toEqual(["a.py:3", 4, null]);
  expect([cellText(12.5, "%"), cellText(2048, "bytes"), cellText(null, "ns")]).toEqual(["13 %", "2.00 KiB", "n/a"]);
});

test("Of processes only those in which a tool saw something are shown, and told apart", async () => {
  const of = (pid: number, rows: number, more = {}) => ({ pid, tools: [{ tool: "t", rows, outputs: [] }], ...more });
  const shown = async (...processes: object[]) =>
    toolResults(await drawn(TREE, { processes }, STEPS)).map((result) => result.note);
  expect(await shown(of(1, 5), of(2, 0))).toEqual([""]);
  expect(await shown(of(1, 5), of(2, 0), of(3, 2, { forked_from: 1 }))).toEqual([
    "process 1",
    "process 3, forked from 1",
  ]);
  expect(await shown(of(1, 0), of(2, 0))).toEqual([""]);
});
