import { expect, test } from "vitest";
import { isTestFile, testAt, testsIn } from "./tests";

const FILE = `import torch

def helper():
    def test_inside():
        pass

def test_plain():
    pass

class TestModel:
    def setup_method(self):
        pass

    async def test_forward(self):
        pass

    class TestDeeper:
        def test_there(self): pass

class Other:
    def test_not_collected(self): pass

def test_last(): pass
`;

test("functions and methods that pytest collects are found with their ids", () => {
  expect(testsIn(FILE).map((one) => one.id)).toEqual([
    "test_plain",
    "TestModel::test_forward",
    "TestModel::TestDeeper::test_there",
    "test_last",
  ]);
});

test("the test at a line is the last one that began above it", () => {
  expect(testAt(FILE, 7)?.id).toBe("test_plain");
  expect(testAt(FILE, 14)?.id).toBe("TestModel::test_forward");
  expect(testAt(FILE, 1)).toBeUndefined();
});

test("only files that pytest collects are test files", () => {
  expect(isTestFile("/a/test_model.py")).toBe(true);
  expect(isTestFile("/a/model_test.py")).toBe(true);
  expect(isTestFile("/a/contest.py")).toBe(false);
  expect(isTestFile("/test_dir/model.py")).toBe(false);
});
