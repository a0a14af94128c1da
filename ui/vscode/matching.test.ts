import { expect, test } from "vitest";
import { below, closest, common, isRemote, learned, mapped } from "./matching";

test("paths are compared from their ends, whatever the separator", () => {
  expect(common("/job/src/model/gpt.py", "/home/ada/model/gpt.py")).toBe(2);
  expect(common("C:\\job\\model\\gpt.py", "/home/ada/model/gpt.py")).toBe(2);
  expect(common("/a/b.py", "/a/c.py")).toBe(0);
});

test("the file that shares most is the one; equals are all named", () => {
  expect(closest("/job/src/a/train.py", ["/w/b/train.py", "/w/a/train.py"])).toEqual(["/w/a/train.py"]);
  expect(closest("/job/train.py", ["/w/a/train.py", "/w/b/train.py"])).toHaveLength(2);
  expect(closest("/job/train.py", [])).toEqual([]);
});

test("library code must agree from its package on", () => {
  const file = "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py";
  expect(closest(file, ["/w/my/module.py", "/w/nn/modules/module.py"])).toEqual([]);
  expect(closest(file, ["/v/site-packages/torch/nn/modules/module.py"])).toHaveLength(1);
});

test("a file below the program's folder is relative to it", () => {
  expect(below("/job/src/a.py", "/job/")).toBe("src/a.py");
  expect(below("/jobs/src/a.py", "/job")).toBe("");
  expect(below("/job/a.py", "")).toBe("");
});

test("a user's choice says where the others are", () => {
  const mapping = learned("/job/src/a/b.py", "/home/me/src/a/b.py");
  expect(mapping).toEqual({ from: "/job/", to: "/home/me/" });
  expect(mapped("/job/src/c.py", mapping ? [mapping] : [])).toEqual(["/home/me/src/c.py"]);
  expect(learned("/job/a.py", "/home/other.py")).toBeNull();
});

test("a path on another machine is known as one", () => {
  expect(isRemote("\\\\server\\share\\a.py")).toBe(true);
  expect(isRemote("//server/share/a.py")).toBe(true);
  expect(isRemote("/home/a.py")).toBe(false);
});
