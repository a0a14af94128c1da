// A backward pass as its events and the graph that was walked in, its edges out.

import { expect, test } from "vitest";
import { backwardEdges } from "./dataflow";
import { drawn, type EventRow } from "./testing/drawing";
import { linksOf } from "./timeline_facts";

const TREE = `
  process a.py
    thread Main
      operator relu
      operator autograd::engine::evaluate_function: SumBackward0
        operator SumBackward0
      operator autograd::engine::evaluate_function: ReluBackward0
        operator ReluBackward0
      operator autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
        operator torch::autograd::AccumulateGrad
`;
const PASS: EventRow[] = [
  [10, 5, "operator", 3, 0, -1, -1, 0, 8, -1, 1],
  [100, 20, "operator", 4, 0, -1, -1, 0, -1, -1, 1],
  [105, 10, "operator", 5, 0, -1, -1, 0, 9, 0, 1],
  [130, 20, "operator", 6, 0, -1, -1, 0, -1, -1, 1],
  [135, 10, "operator", 7, 0, -1, -1, 0, 8, 0, 1],
  [160, 20, "operator", 8, 0, -1, -1, 0, -1, -1, 1],
  [165, 10, "operator", 9, 0, -1, -1, 0, -1, -1, 1],
];
const GRAPH = {
  begin_ns: 90,
  nodes: [
    [0, "SumBackward0", 9],
    [1, "ReluBackward0", 8],
    [2, "torch::autograd::AccumulateGrad", -1],
  ],
  edges: [0, 1, 1, 2],
};
const pass = (graphs: unknown, moved = 0) =>
  drawn(TREE, { processes: [{ pid: 1, dataflow: { graphs }, clock: { moved_ns: moved } }] }, PASS);

test("a gradient goes from node to node, and accumulations follow what feeds them", async () => {
  const { source, target } = backwardEdges(await pass([GRAPH]));
  expect(source.map((one, i) => [one, target[i]])).toEqual([
    [1, 3],
    [3, 5],
  ]);
});

test("the node and the operator in it are joined with their neighbours, beside their forward", async () => {
  const profile = await pass([GRAPH]);
  expect(linksOf(profile, 3)).toEqual([
    { what: "gradient", from: 1, to: 3 },
    { what: "gradient", from: 3, to: 5 },
  ]);
  expect(linksOf(profile, 4)).toEqual([
    { what: "gradient", from: 1, to: 4 },
    { what: "gradient", from: 4, to: 5 },
    { what: "backward", from: 0, to: 4 },
  ]);
});

test("a graph of another pass, or of a process on another clock, has other events", async () => {
  const later = { ...GRAPH, begin_ns: 170 };
  expect(backwardEdges(await pass([later])).source).toEqual([]);
  expect(backwardEdges(await pass([later], -80)).source).toEqual([1, 3]);
});

test("someone else's graph is no trouble", async () => {
  for (const graphs of [7, [7, null, {}], [{ nodes: 7, edges: "x" }], [{ ...GRAPH, edges: [0, "x", 0] }]])
    expect(backwardEdges(await pass(graphs)).source).toEqual([]);
});
