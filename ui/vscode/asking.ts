// What Python says of profiles that are open (`leadline view --data`), and traces as profiles (`leadline import`): where the
// extension's host can start a program and the workspace is trusted.

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
    done: (error: Error | null, output: string, errors: string) => void,
  ): void;
}

declare function require(name: string): ChildProcess;

/** Null where nothing can be asked or there is no answer: what the file has stored is shown then. */
export async function pythonSays(uris: vscode.Uri[]): Promise<PythonSays | null> {
  if (uris.some(({ scheme }) => scheme !== "file")) return null;
  try {
    return JSON.parse(await answer(uris[0], ["view", ...uris.map((uri) => uri.fsPath), "--data", "-"])) as PythonSays;
  } catch {
    return null; // nothing can be asked, no Leadline there, or another release of it
  }
}

/** A trace of another profiler as a profile, in the file `made`. Raises an error with a sentence. */
export async function imported(trace: vscode.Uri, made: vscode.Uri): Promise<void> {
  if (!vscode.workspace.isTrusted || trace.scheme !== "file" || !ofNode())
    throw new Error(
      "A trace is read by Python, in a trusted workspace on this machine; `leadline import` makes a profile that opens everywhere.",
    );
  await answer(trace, ["import", trace.fsPath, "-o", made.fsPath, "--force"]);
}

/** What `leadline WORDS` prints; raises what it says where it fails. */
async function answer(resource: vscode.Uri, words: string[]): Promise<string> {
  const node = ofNode();
  if (!node || !vscode.workspace.isTrusted || resource.scheme !== "file") throw new Error("Nothing can be run here.");
  const python = await interpreter(resource);
  const options = { timeout: PATIENCE_MS, maxBuffer: MOST_BYTES, windowsHide: true };
  return new Promise((resolve, reject) =>
    node.execFile(python, ["-m", "leadline", ...words], options, (error, text, said) =>
      error ? reject(new Error(said.trim().split("\n").at(-1) || error.message)) : resolve(text),
    ),
  );
}

/** The extension's host in a browser has no processes. */
function ofNode(): ChildProcess | null {
  try {
    return require("child_process");
  } catch {
    return null;
  }
}
