// What Python says of profiles that are open: `leadline view --data`, where the extension's host can start a program and the
// workspace is trusted.

import * as vscode from "vscode";
import type { PythonSays } from "../views/host";
import { interpreter } from "./running";

const PATIENCE_MS = 180_000;
const MOST_BYTES = 2 ** 29;

interface ChildProcess {
  execFile(
    file: string,
    words: string[],
    options: { timeout: number; maxBuffer: number; windowsHide: boolean },
    done: (error: Error | null, output: string) => void,
  ): void;
}

declare function require(name: string): ChildProcess;

/** Null where nothing can be asked or there is no answer: what the file has stored is shown then. */
export async function pythonSays(uris: vscode.Uri[]): Promise<PythonSays | null> {
  if (!vscode.workspace.isTrusted || uris.some(({ scheme }) => scheme !== "file")) return null;
  const node = ofNode();
  if (!node) return null;
  const words = ["-m", "leadline", "view", ...uris.map((uri) => uri.fsPath), "--data", "-"];
  const python = await interpreter(uris[0]);
  const options = { timeout: PATIENCE_MS, maxBuffer: MOST_BYTES, windowsHide: true };
  const output = await new Promise<string>((resolve) =>
    node.execFile(python, words, options, (error, text) => resolve(error ? "" : text)),
  );
  try {
    return JSON.parse(output) as PythonSays;
  } catch {
    return null; // no Leadline there, or another release of it
  }
}

/** The extension's host in a browser has no processes. */
function ofNode(): ChildProcess | null {
  try {
    return require("child_process");
  } catch {
    return null;
  }
}
