import { expect, test } from "vitest";
import { fileCosts } from "./costs";
import { drawn } from "./testing/drawing";

const PROGRAM = `
  process train.py
    thread MainThread
      python <module> @ /home/ada/train.py:9
        python step @ /home/ada/train.py:5
          operator aten::mm | time=600/2
          python helper @ /usr/lib/python3.11/site-packages/torch/x.py:7
            operator aten::relu | time=100/1
        python step @ /home/ada/train.py:6
          operator aten::add | time=300/1
`;

test("a line answers for what it called, and for library code up to the next line of the user's", async () => {
  const costs = fileCosts(await drawn(PROGRAM), "time");
  const train = costs.get("/home/ada/train.py");
  expect(train?.lines.get(5)).toMatchObject({ booked: 700, total: 700 });
  expect(train?.lines.get(9)).toMatchObject({ booked: 0, total: 1000 });
  expect(costs.get("/usr/lib/python3.11/site-packages/torch/x.py")?.lines.get(7)).toMatchObject({
    booked: 0,
    total: 100,
  });
});

test("a line that calls itself counts once", async () => {
  const profile = await drawn(`
    process a.py
      thread MainThread
        python f @ a.py:2
          operator aten::mm | time=10/1
          python f @ a.py:2
            operator aten::mm | time=30/1
  `);
  expect(fileCosts(profile, "time").get("a.py")?.lines.get(2)).toMatchObject({ booked: 40, total: 40, node: 3 });
});

test("a path of ten thousand frames is no deeper than one of ten", async () => {
  const indent = (level: number) => "  ".repeat(level);
  const frames = Array.from({ length: 10_000 }, (_, i) => `${indent(i + 2)}python f @ deep.py:${(i % 7) + 1}`);
  const text = ["process a.py", "  thread MainThread", ...frames, `${indent(10_002)}operator aten::mm | time=5/1`];
  expect(
    fileCosts(await drawn(text.join("\n")), "time")
      .get("deep.py")
      ?.lines.get(3)?.total,
  ).toBe(5);
});
