// What the pages share: the open profile, what was said about it, and how to get from one page to another.

import type { Findings, Report } from "../model/report";
import type { Profile } from "../model/profile";
import type { Search } from "../model/search";
import type { Comparison } from "./comparison";
import type { Host } from "./host";

/** Where neither Python nor the file says what a page would show. */
export const NO_SUMMARY =
  "This file holds no summary, and no Python with Leadline answered. `leadline analyze --save FILE` keeps one in the file.";

export interface Opened {
  host: Host;
  profile: Profile;
  report: Report;
  findings: Findings | null;
  /** Python has not answered yet: the report is the one that the file keeps, and findings may come. */
  waiting: boolean;
  search: Search;
  comparison: Comparison;
  shortFile(file: string): string;
  go: Navigation;
}

export interface Navigation {
  page(name: string): void;
  /** The flame graph at a row of the tree, by a metric. */
  frame(row: number, metric?: string): void;
  search(text: string): void;
  /** The flame graph of one rank of a merged job. */
  rank(rank: number): void;
  source(file: string, line: number): void;
  /** Any place, by its address. */
  to(address: string): void;
}
