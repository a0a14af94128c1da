// What the page and the extension say to each other.

import type { Findings } from "../model/report";

export type ToPage =
  | { type: "open"; names: string[]; version: string; profiles: Uint8Array[]; findings: (Findings | null)[] }
  | { type: "failed"; sentence: string }
  | { type: "source"; id: number; text: string | null }
  | { type: "show"; row: number };

export type FromPage =
  | { type: "ready" }
  | { type: "source"; id: number; file: string }
  | { type: "openFile"; file: string; line: number; asked: boolean };
