// Where a page gets what it shows, and what the place it runs in can do for it: the self-contained file, the local server,
// VS Code. A page never asks which of them it is.

import type { Changes } from "../model/changes";
import type { Comparison } from "../model/comparison";
import type { ComparedTree } from "../model/diff";
import type { Predicted } from "../model/predicted";
import type { Findings, Report } from "../model/report";

/** What `leadline diff` says of two profiles, and both on one tree. */
export interface Compared {
  found: Comparison;
  tree: ComparedTree;
}

/** What `leadline view --data` writes: answers for all profiles at once. */
export interface PythonSays {
  reports: (Report | null)[];
  findings: (Findings | null)[];
  comparison: Comparison | null;
  comparedTree: ComparedTree | null;
}

export interface Host {
  /** Names of the profiles, the first one before a change and the second after it where there are two. */
  readonly names: string[];
  /** The bytes of a `.leadline` file. */
  bytes(index: number): Promise<Uint8Array>;
  /** What Python says about the profile; null where there is no Python. */
  report(index: number): Promise<Report | null>;
  findings(index: number): Promise<Findings | null>;
  /** Null or absent where there is no Python or only one profile. */
  comparison?(): Promise<Compared | null>;
  /** A predicted timeline, by the title of its scenario (empty: the best advice); absent where there is no Python. */
  predicted?(index: number, name: string): Promise<Predicted>;
  /** What changes would do, and what was tried; absent where there is no Python. */
  changes?(index: number): Promise<Changes | { trouble: string }>;
  /** Titles of those that are at hand, so the page shows them at once. */
  readonly predictedAtOnce?: readonly string[];
  /** The text of a source file that the profile names; null where it cannot be had or has changed. */
  source(file: string): Promise<string | null>;
  /** Opens a file at a line in an editor; absent where there is none. */
  openFile?(file: string, line: number): void;
  /** A frame was clicked whose line this is; an editor may follow. Absent where nothing follows. */
  clicked?(file: string, line: number): void;
  /** Resolves when there is more to show than what was handed out last, with false when there never will be; absent
   * where nothing changes. */
  changed?(): Promise<boolean>;
  /** The commands page says them; absent in an editor. */
  readonly commands: boolean;
  /** Version of what made the page. */
  readonly version: string;
}
