import { expect, test } from "vitest";
import { kernelCode, ranked, sampledKernels } from "./kernels";
import { drawn } from "./testing/drawing";

const TREE = `
  process a.py
    thread Main
      operator mm
        kernel norm | gpu_time=9
          instruction norm @ k.cu:28
            instruction square @ k.cu:12
              instruction FMUL @ k.cu:12 {"stall": "wait", "code": "aa", "function": "_Z4norm"} | instruction_samples=60/60
            instruction LDG @ k.cu:28 {"stall": "long_scoreboard", "code": "aa", "function": "_Z4norm"} | instruction_samples=30/30
          instruction norm @ k.cu:30
            instruction EXIT @ k.cu:30 {"code": "aa", "function": "_Z4norm"} | instruction_samples=10/10
        kernel other | gpu_time=1
      operator again
        kernel norm | gpu_time=1
          instruction norm @ k.cu:30
            instruction EXIT @ k.cu:30 {"code": "aa", "function": "_Z4norm"} | instruction_samples=5/5
`;

test("heat of lines holds what was inlined there, and of all launches of one name", async () => {
  const profile = await drawn(TREE);
  const kernels = sampledKernels(profile);
  expect(kernels.map(({ name, samples, gpu_time_ns }) => [name, samples, gpu_time_ns])).toEqual([["norm", 105, 10]]);
  const code = kernelCode(profile, kernels[0]);
  const lines = code.files.get("k.cu")!;
  expect([28, 12, 30].map((line) => lines.get(line)?.samples)).toEqual([90, 60, 15]);
  expect(ranked(lines.get(28)!)).toEqual([
    ["wait", 60],
    ["long_scoreboard", 30],
  ]);
  expect(ranked(code)).toEqual(ranked(lines.get(28)!));
  expect(code.functions.map((one) => one.name)).toEqual(["_Z4norm"]);
});

test("nothing is said where nothing was sampled", async () => {
  expect(sampledKernels(await drawn("process a\n  thread t\n    kernel k | gpu_time=3"))).toEqual([]);
});
