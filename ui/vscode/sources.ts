// The text of source files for the page: files that the profile names, and only as long as they are what ran.

import * as vscode from "vscode";
import type { Files } from "./files";
import type { OpenProfile } from "./store";

const LARGEST = 4 << 20;

export class Sources {
  /** Null where the profile does not name the file, it cannot be found or it has changed since. */
  async text(profile: OpenProfile, file: string, files: Files): Promise<string | null> {
    if (!profile.costs.has(file) && !namedBy(profile, file)) return null;
    const uri = await files.find(profile, file);
    if (!uri || (await changedSince(profile, uri))) return null;
    try {
      const bytes = await vscode.workspace.fs.readFile(uri);
      return bytes.length > LARGEST ? null : new TextDecoder().decode(bytes);
    } catch {
      return null;
    }
  }
}

/** Whether a file was written after the program had ended; what lies elsewhere may have been copied later, and is taken. */
export async function changedSince(profile: OpenProfile, uri: vscode.Uri): Promise<boolean> {
  const named = profile.costs.has(uri.path) || profile.costs.has(uri.fsPath);
  if (!named || !profile.endedMs) return false;
  try {
    return (await vscode.workspace.fs.stat(uri)).mtime > profile.endedMs;
  } catch {
    return false;
  }
}

function namedBy({ profile }: OpenProfile, file: string): boolean {
  return [...new Set(profile.tables.frames.file)].some((row) => profile.text(row) === file);
}
