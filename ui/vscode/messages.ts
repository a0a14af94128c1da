// What the page and the extension say to each other.

import type { Findings } from "../model/report";
import type { PythonSays } from "../views/host";

export type ToPage =
  | {
      type: "open";
      look: number;
      names: string[];
      version: string;
      profiles: Uint8Array[];
      findings: (Findings | null)[];
    }
  /** Of the files as they were opened in that look; null where there is no Python to ask, or it does not answer. */
  | { type: "said"; look: number; said: PythonSays | null }
  | { type: "failed"; sentence: string }
  | { type: "source"; id: number; text: string | null }
  | { type: "show"; row: number };

export type FromPage =
  | { type: "ready" }
  | { type: "source"; id: number; file: string }
  | { type: "openFile"; file: string; line: number; asked: boolean };
