// Views drawn as text: top-down, bottom-up, folded, joined, recursion collapsed, and what search and callers find.

import { expect, test } from "vitest";
import { around } from "./around";
import { BadPattern, Search } from "./search";
import { pathText } from "./same_path";
import { drawn } from "./testing/drawing";
import type { TransformKind } from "./transforms";
import { twins } from "./twins";
import { TreeView, type ViewNode, type ViewOptions } from "./view";

const PLAIN: ViewOptions = {
  metric: "time", inverted: false, hideLibrary: false, foldLayers: false, joinProcesses: false, collapseRecursion: false,
}; // prettier-ignore

function text(view: TreeView): string {
  const lines: string[] = [];
  const walk = (node: ViewNode) => {
    lines.push(`${"  ".repeat(node.depth)}${view.label(node)} ${node.value}`);
    view.children(node).forEach(walk);
  };
  walk(view.root);
  return lines.join("\n");
}

const MODEL = `
  process a.py
    thread Main
      python main @ /u/t.py:3
        python call @ /x/site-packages/torch/nn/m.py:9
          module h.0 [Block]
            operator mm | time=5 call_time=5
          module h.1 [Block]
            operator mm | time=7 call_time=7
            operator relu | time=1 call_time=1
  process b.py
    thread Main
      python main @ /u/t.py:3
        operator relu | time=2 call_time=2
`;

test("of memory at the peak the picture is that of the process with most", async () => {
  const profile = await drawn(`
  process a.py | pid=1
    thread Main
      operator mm | peak_live_bytes=40
  process b.py | pid=2
    thread Main
      operator relu | peak_live_bytes=30
      operator mm | peak_live_bytes=20
`);
  const view = new TreeView(profile, { ...PLAIN, metric: "peak_live_bytes" });
  expect(text(view)).toBe("all 50\n  process 2: b.py 50\n    Main 50\n      relu 30\n      mm 20");
});

test("top-down, the largest first", async () => {
  const profile = await drawn(MODEL);
  expect(text(new TreeView(profile, PLAIN))).toBe(`all 15
  process 1: a.py 13
    Main 13
      main · t.py:3 13
        call · m.py:9 13
          h.1 (Block) 8
            mm 7
            relu 1
          h.0 (Block) 5
            mm 5
  process 2: b.py 2
    Main 2
      main · t.py:3 2
        relu 2`);
});

test("libraries hidden, layers folded, processes joined", async () => {
  const profile = await drawn(MODEL);
  const options = { ...PLAIN, hideLibrary: true, foldLayers: true, joinProcesses: true };
  expect(text(new TreeView(profile, options))).toBe(`all 15
  main · t.py:3 15
    h.* (Block) 13
      mm 12
      relu 1
    relu 2`);
});

test("native frames that only call others are hidden with libraries", async () => {
  const profile = await drawn(`
    python f @ /u/t.py:1
      native at::_ops::view::call
        native c10::Dispatcher::callWithDispatchKeySlowPath<>
          native torch::autograd::VariableType::{anonymous}::view
            native at::native::view
              operator view | time=3/1`);
  const shown = text(new TreeView(profile, { ...PLAIN, hideLibrary: true }));
  expect(shown).toContain("at::native::view");
  expect(shown).not.toMatch(/Dispatcher|VariableType|_ops/);
  expect(text(new TreeView(profile, PLAIN))).toMatch(/Dispatcher/);
});

test("bottom-up: what spent it, below its callers; every level adds up", async () => {
  const profile = await drawn(MODEL);
  const options = { ...PLAIN, inverted: true, foldLayers: true, joinProcesses: true, hideLibrary: true };
  expect(text(new TreeView(profile, options))).toBe(`all (bottom-up) 15
  mm 12
    h.* (Block) 12
      main · t.py:3 12
  relu 3
    main · t.py:3 2
    h.1 (Block) 1
      main · t.py:3 1`);
});

test("recursion is drawn once, direct or through others", async () => {
  const profile = await drawn(`
    python f @ /u/t.py:1
      python g @ /u/t.py:2
        python f @ /u/t.py:1
          python g @ /u/t.py:2
            operator mm | time=4
          operator relu | time=1
  `);
  expect(text(new TreeView(profile, { ...PLAIN, collapseRecursion: true }))).toBe(`all 5
  f · t.py:1 5
    g · t.py:2 5
      mm 4
      relu 1`);
});

test("a stack of 5,000 frames is no trouble", async () => {
  const lines = Array.from({ length: 5000 }, (_, i) => `${"  ".repeat(i)}python f${i} @ /u/t.py:${i + 1}`);
  const profile = await drawn([...lines, `${"  ".repeat(5000)}operator mm | time=1`].join("\n"));
  const view = new TreeView(profile, PLAIN);
  expect(view.find(5001).depth).toBe(5001);
});

test("search counts each part of the tree once, by text or regular expression", async () => {
  const profile = await drawn(MODEL);
  const search = new Search(profile);
  expect(search.find("h.", "time")).toMatchObject({ sum: 13, count: 2 });
  expect(search.find("H.*", "time")).toMatchObject({ sum: 13, count: 2 });
  expect(search.find("/^(mm|relu) /", "time")).toMatchObject({ sum: 15, count: 4 });
  expect(search.find("main", "time")).toMatchObject({ sum: 15, count: 2 });
  expect(search.find(" ", "time")).toBeNull();
  expect(() => search.find("/(/", "time")).toThrow(BadPattern);
});

test("callers and callees of a frame in all its places", async () => {
  const profile = await drawn(MODEL);
  const view = new TreeView(profile, { ...PLAIN, foldLayers: true });
  const relu = around(view, view.find(profile.size - 1));
  expect(relu).toMatchObject({ whole: 3, self: 3, callees: [] });
  expect(relu.callers.map(({ label, value }) => `${label} ${value}`)).toEqual(["main · t.py:3 2", "h.* (Block) 1"]);
  const main = around(view, view.find(3));
  expect(main.callees.map(({ label, value }) => `${label} ${value}`)).toEqual(["call · m.py:9 13", "relu 2"]);
});

test("an operator and its backward name each other", async () => {
  const profile = await drawn(`
    operator linear | time=1
      phase backward
        operator LinearBackward | time=2
  `);
  expect(twins(profile, [1])).toEqual({ direction: "backward", rows: [3] });
  expect(twins(profile, [3])).toEqual({ direction: "forward", rows: [1] });
  expect(twins(profile, [2])).toBeNull();
});

test("equal processes have boxes of their own, unless they are joined", async () => {
  const ranks = await drawn(`
    process python -u a.py
      thread main
        operator mm | time=5
    process python -u a.py
      thread main
        operator mm | time=7
  `);
  const options = {
    metric: "time",
    inverted: false,
    hideLibrary: true,
    foldLayers: true,
    joinProcesses: false,
    collapseRecursion: false,
  };
  const apart = new TreeView(ranks, options);
  expect(apart.children(apart.root).map((node) => apart.label(node))).toEqual([
    "process 2: python -u a.py",
    "process 1: python -u a.py",
  ]);
  expect(apart.find(ranks.tables.processes.node[0]).value).toBe(5);
  const joined = new TreeView(ranks, { ...options, joinProcesses: true });
  expect(joined.children(joined.root).map((node) => `${joined.label(node)} ${node.value}`)).toEqual(["mm 12"]);
});

test("parts are dropped, merged and looked at alone, and shares are of what is left", async () => {
  const profile = await drawn(MODEL);
  const does = (...list: [TransformKind, string][]) =>
    text(
      new TreeView(profile, {
        ...PLAIN,
        hideLibrary: true,
        transforms: list.map(([kind, of]) => ({ kind, of, name: "" })),
      }),
    );
  expect(does(["drop", "operator relu"])).toBe(`all 12
  process 1: a.py 12
    Main 12
      main · t.py:3 12
        h.1 (Block) 7
          mm 7
        h.0 (Block) 5
          mm 5`);
  expect(does(["function", "module h.*"])).toBe(`all 13
  h.1 (Block) 8
    mm 7
    relu 1
  h.0 (Block) 5
    mm 5`);
  expect(does(["function", "module h.*"], ["merge", "module h.*"])).toBe("all 13\n  mm 12\n  relu 1");
  const path = pathText(profile, 6);
  expect(does(["focus", path], ["drop", "operator mm"])).toBe("all 0");
  expect(does(["drop", "operator mm"], ["drop", "python main t.py:3"])).toBe("all 0");
  const inverted = {
    ...PLAIN,
    inverted: true,
    transforms: [{ kind: "function", of: "operator relu", name: "" } as const],
  };
  expect(text(new TreeView(profile, inverted))).toBe("all (bottom-up) 3\n  relu 3");
});

test("in the order of first calls", async () => {
  const profile = await drawn(MODEL);
  const view = new TreeView(profile, { ...PLAIN, hideLibrary: true, foldLayers: true, order: "time" });
  expect(text(view).split("\n").slice(0, 7).map((line) => line.trim())).toEqual([
    "all 15", "process 1: a.py 13", "Main 13", "main · t.py:3 13", "h.* (Block) 13", "mm 12", "relu 1",
  ]); // prettier-ignore
});
