import { expect, test } from "vitest";
import { coloured } from "./colours";

const CODE = `import torch  # all
@torch.compile
def f(x):
    """Two
    lines"""
    return f"{x + 1}" if x else None
`;

test("lines of pieces hold the whole text", () => {
  const lines = coloured(CODE, "a.py");
  expect(lines.map((line) => line.map(([, text]) => text).join("")).join("\n")).toBe(CODE);
  expect(lines[0]).toContainEqual(["comment", "# all"]);
  expect(lines[0][0]).toEqual(["keyword", "import"]);
  expect(lines[3]).toContainEqual(["string", '"""Two']);
  expect(lines[4]).toEqual([["string", '    lines"""']]);
});

test("markup and kernels are text, too", () => {
  const [line] = coloured("x = '<script>alert(1)</script>'", "a.py");
  expect(line.map(([, text]) => text).join("")).toBe("x = '<script>alert(1)</script>'");
  expect(coloured("__global__ void k(int n) {}", "a.cu")[0]).toContainEqual(["keyword", "void"]);
});
