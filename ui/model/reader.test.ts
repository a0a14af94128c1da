// The reader against files that Python wrote (tests/ui/make.py) and against damage.

import { describe, expect, test } from "vitest";
import { openProfile } from "./reader";
import { drawn, zipOf } from "./testing/drawing";

describe("a file", () => {
  test("opens with its tree, texts and metrics", async () => {
    const profile = await drawn(`
      python main @ /a/t.py:7
        operator aten::mm | time=5 call_time=9
    `);
    expect(profile.size).toBe(3);
    expect([0, 1, 2].map((row) => profile.kind(row))).toEqual(["root", "python", "operator"]);
    expect(profile.name(2)).toBe("aten::mm");
    expect(profile.metrics.values("time").whole[0]).toBe(5);
    expect(profile.metrics.drawn.map((metric) => metric.name)).toEqual(["time", "calls"]);
  });

  test.each([
    ["nothing", new Uint8Array(0), "The file is empty"],
    ["text", new TextEncoder().encode("hello, this is no archive at all"), "is not a Leadline profile or is cut off"],
    ["another archive", zipOf({ "meta.json": "{}" }), "does not say format leadline"],
    [
      "a newer file",
      zipOf({ "meta.json": '{"format":{"name":"leadline","version":99},"leadline":"9.0"}' }),
      "written by leadline 9.0",
    ],
    ["a foreign part", zipOf({ "../evil.npy": "x" }), "which no Leadline profile has"],
    ["JSON that is none", zipOf({ "meta.json": "{" }), "is not JSON"],
  ])("that is %s is refused with a sentence", async (_, bytes, sentence) => {
    await expect(openProfile(bytes)).rejects.toThrow(sentence);
  });
});
