import { expect, test } from "vitest";
import { changes, diffOf } from "./diff";
import { drawn } from "./testing/drawing";

const before = () =>
  drawn(`
  process /old/train.py
    thread Main-1
      python main @ /old/t.py:10
        operator mm | time=100/2 call_time=100/2
        operator relu | time=10/2 call_time=10/2
      operator Optimizer.step#SGD | time=2/2 call_time=2/2
`);
const after = () =>
  drawn(
    `
  process /new/train.py
    thread Main-7
      python main @ /new/t.py:15
        operator mm | time=60/1 call_time=60/1
        operator gelu漢 | time=7/1 call_time=7/1
      operator Optimizer.step#SGD | time=1/1 call_time=1/1
`,
    { host: { hostname: "other" } },
  );

test("paths are aligned by names and values are per step", async () => {
  const diff = diffOf(await before(), await after());
  expect(diff.perStep).toBe(true);
  expect(diff.steps).toEqual([2, 1]);
  const rows = changes(diff, "time").map((one) => `${diff.after.name(one.node)} ${one.before} ${one.after}`);
  expect(rows).toEqual(["mm 50 60", "gelu漢 0 7", "relu 5 0"]);
  expect(diff.before.metrics.values("time").whole[0]).toBe(56);
  expect(diff.after.metrics.values("time").whole[0]).toBe(68);
});

test("a function with another name is one row with both names; what calls others stays new and gone", async () => {
  const named = (name: string, other: string) =>
    drawn(`
  process /old/train.py
    thread Main-1
      python ${name} @ /old/t.py:10
        operator mm | time=100 call_time=100
        python inner${name} @ /old/t.py:20
          operator exp | time=5 call_time=5
          operator log | time=6 call_time=6
      python ${other} @ /old/t.py:30
        operator ${other} | time=7 call_time=7
`);
  const diff = diffOf(await named("loss", "pad"), await named("criterion", "crop"));
  expect(diff.renamed.map(({ from, to }) => `${from} > ${to}`)).toEqual([
    "loss > criterion",
    "innerloss > innercriterion",
  ]);
  expect(diff.after.name(diff.renamed[0].row)).toBe("loss → criterion");
  const rows = changes(diff, "time").map((one) => `${diff.after.name(one.node)} ${one.before} ${one.after}`);
  expect(rows).toEqual(["pad 7 0", "crop 0 7"]);
});

test("every node of both profiles has its row", async () => {
  const [one, other] = [await before(), await after()];
  const { rowOf, before: a, after: b } = diffOf(one, other);
  for (const [profile, rows] of [
    [one, rowOf[0]],
    [other, rowOf[1]],
  ] as const)
    for (let node = 1; node < profile.size; node++) {
      expect(a.parent[rows[node]]).toBe(rows[profile.parent[node]]);
      if (profile.kind(node) === "operator") expect(b.name(rows[node])).toBe(profile.name(node));
    }
});

test("what hinders comparing is said", async () => {
  const diff = diffOf(await before(), await after());
  expect(diff.hindrances).toEqual(["Other machines: unknown before, other after."]);
});

test("a profile with itself has no change", async () => {
  const diff = diffOf(await before(), await before());
  expect(changes(diff, "time")).toEqual([]);
  expect(diff.hindrances).toEqual([]);
});

test("two programs with nothing in common", async () => {
  const diff = diffOf(await before(), await drawn("process x\n  thread t\n    operator a | time=3 call_time=3"));
  expect(diff.perStep).toBe(false);
  expect(diff.after.metrics.values("time").whole[0]).toBe(3);
});
