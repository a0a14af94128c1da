import { expect, test } from "vitest";
import { savedFindings } from "./findings";
import { drawn } from "./testing/drawing";

const TREE = `
  process a.py
    thread MainThread
`;
const of = async (findings: unknown) => savedFindings(await drawn(TREE, { findings }));

test("what the analyzer saved is read", async () => {
  const found = await of({
    steps: 3,
    step_ns: 100,
    findings: [{ rule: "item", severity: "warning", title: "x", paths: [1], lines: [{ file: "/a.py", line: 4 }] }],
  });
  expect(found?.steps).toBe(3);
  expect(found?.findings[0]).toMatchObject({ rule: "item", severity: "warning", paths: [1], evidence: [] });
  expect(found?.findings[0].lines[0]).toMatchObject({ file: "/a.py", line: 4, short: "/a.py" });
});

test("a file without findings has none", async () => {
  expect(savedFindings(await drawn(TREE))).toBeNull();
  for (const strange of [null, 7, "x", [], {}, { findings: 3 }]) expect(await of(strange)).toBeNull();
});

test("parts that are no findings become empty ones, and rows outside the tree are left out", async () => {
  const found = await of({
    steps: "many",
    findings: [
      null,
      3,
      { rule: 5, severity: {}, gain: [], paths: [0, -1, 99, 1.5, "2"], lines: [{ line: -4, file: [] }, null] },
    ],
    notes: ["n", 4],
  });
  expect(found).toMatchObject({ steps: 0, step_ns: 0, notes: ["n"] });
  expect(found?.findings).toHaveLength(1);
  expect(found?.findings[0]).toMatchObject({ rule: "", severity: "info", paths: [0], title: "" });
  expect(found?.findings[0].lines).toEqual([{ file: "", line: 0, function: "", short: "", text: "", context: "" }]);
  expect(found?.findings[0].gain.expected_ns).toBe(0);
});
