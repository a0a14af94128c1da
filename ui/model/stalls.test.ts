import { expect, test } from "vitest";
import { stallsBelow } from "./stalls";
import { drawn } from "./testing/drawing";

const TREE = `
  process a.py
    thread Main
      operator mm
        kernel sgemm
          instruction LDG.E @ k.cu:7 {"stall": "long_scoreboard"} | instruction_samples=60/60
          instruction LDG.E @ k.cu:7 | instruction_samples=10/10
          instruction FFMA {"stall": "math_pipe"} | instruction_samples=25/25
          instruction EXIT {"stall": 7} | instruction_samples=5/5
      operator relu | time=3
`;

test("samples of instructions by reason and by instruction", async () => {
  const profile = await drawn(TREE);
  expect(stallsBelow(profile, [3])).toEqual({
    samples: 100,
    reasons: [
      ["long_scoreboard", 60],
      ["math_pipe", 25],
    ],
    instructions: [
      { name: "LDG.E", file: "k.cu", line: 7, samples: 70, stall: "long_scoreboard" },
      { name: "FFMA", file: "", line: 0, samples: 25, stall: "math_pipe" },
      { name: "EXIT", file: "", line: 0, samples: 5, stall: "" },
    ],
  });
});

test("nothing is said where no instruction was sampled", async () => {
  const profile = await drawn(TREE);
  expect(stallsBelow(profile, [9])).toBeNull();
  expect(stallsBelow(await drawn("process a\n  thread t\n    operator mm | time=3"), [0])).toBeNull();
});
