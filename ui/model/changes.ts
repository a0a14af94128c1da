// What changes would do to a step, or did, as Python says it (report/changes.py): texts are ready to be read.

export interface ChangeBar {
  name: string;
  ns: number;
  low_ns: number;
  high_ns: number;
  before: boolean;
  gains: boolean;
}

export interface ChangeRow {
  bar: ChangeBar;
  cells: string[];
  verdict: string;
  more: string[];
}

export interface ChangeLane {
  name: string;
  kind: string;
  before: [first: number, bins: number, level: number][];
  after: [first: number, bins: number, level: number][];
}

export interface Changes {
  title: string;
  program: string;
  facts: string;
  caption: string;
  sentence: string;
  because: string[];
  bars: ChangeBar[];
  advice: { do: string; gain: string; sure: string; more: string[]; command: string }[];
  heads: string[];
  groups: { title: string; rows: ChangeRow[]; folded: boolean }[];
  notes: string[];
  /** What was not tried, and why. */
  left: string[];
  parts_note: string;
  parts: { name: string; sort: string; ns: number; note: string }[];
  lanes: { said: string; bins: number; levels: number; lanes: ChangeLane[] } | null;
}
