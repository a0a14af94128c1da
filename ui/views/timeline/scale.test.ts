import { expect, test } from "vitest";
import { tickText } from "./scale";

test("ticks are told apart however far one zooms in", () => {
  const texts = (first: number, step: number) => [0, 1, 2].map((i) => tickText(first + i * step, first, step));
  expect(texts(0, 50e6)).toEqual(["0 ns", "50.0 ms", "100 ms"]);
  expect(texts(267_000_500, 500)).toEqual(["267.0005 ms", "+500 ns", "+1.00 µs"]);
  expect(texts(12_000_000_020, 20)).toEqual(["12.00000002 s", "+20 ns", "+40 ns"]);
});
