// What `leadline diff` says of two profiles, as Python delivers it (report/comparison.py): the page draws it.

import { change } from "./units";

/** One quantity a step on both sides; `verdict` is on `ratio`, which lies in [low, high]; null is infinite. */
export interface Figure {
  a: number;
  b: number;
  ratio: number | null;
  low: number | null;
  high: number | null;
  verdict: string;
}

export interface PathChange {
  status: "both" | "added" | "removed" | "renamed";
  kind: string;
  name: string;
  path: string[];
  time: Figure;
  calls: [number, number];
  alloc_bytes: [number, number];
  was: string;
}

export interface Comparison {
  steps: [number, number];
  /** (aspect, sentence) of what makes the sides differ. */
  differences: [string, string][];
  step: Figure;
  work: Figure;
  gpu: Figure | null;
  peak: [number, number];
  alloc: [number, number];
  calls: [number, number];
  changes: PathChange[];
  change_count: number;
  /** Name before, name after, each pair once. */
  renamed: [string, string][];
  smallest: string;
  doubt: string;
}

/** `+1.9 % to +7.0 %`; empty where there was nothing before. */
export function intervalText({ a, low, high }: Figure): string {
  if (!a || low === null || high === null) return "";
  return `${change(low - 1)} to ${change(high - 1)}`;
}
