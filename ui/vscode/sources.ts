// The text of source files for the page: files that the profile names, and only as long as they are what ran.

import * as vscode from "vscode";
import { isObject } from "../model/reader";
import type { Files } from "./files";
import type { OpenProfile } from "./store";

const LARGEST = 4 << 20;
/** As in `leadline.sources`. */
const SUFFIXES = new Set(
  ".py .pyi .pyx .pxd .cu .cuh .h .hh .hpp .hip .c .cc .cpp .cxx .inc .inl .jl .rs .mojo .ll .mlir .ptx".split(" "),
);

export class Sources {
  /** Null where the profile does not name the file, it cannot be found or it has changed since. */
  async text(profile: OpenProfile, file: string, files: Files): Promise<string | null> {
    if (!profile.costs.has(file) && !namedBy(profile, file)) return null;
    const uri = await files.find(profile, file);
    if (!uri || !SUFFIXES.has(ending(uri.path)) || (await changedSince(profile, file, uri))) return null;
    // a profile may come from a stranger: what ran, or what the reader has open, and nothing else
    if (!hashOf(profile, file) && !vscode.workspace.getWorkspaceFolder(uri)) return null;
    try {
      const bytes = await vscode.workspace.fs.readFile(uri);
      return bytes.length > LARGEST ? null : new TextDecoder().decode(bytes);
    } catch {
      return null;
    }
  }
}

function ending(path: string): string {
  return /\.[^./]*$/.exec(path)?.[0].toLowerCase() ?? "";
}

/** Whether what lies at `uri` is no longer the `file` that ran: by its hash where the profile has it. Else by its time, which
 * says nothing of a copy elsewhere. */
export async function changedSince(profile: OpenProfile, file: string, uri: vscode.Uri): Promise<boolean> {
  try {
    const { mtime } = await vscode.workspace.fs.stat(uri);
    const known = hashOf(profile, file);
    if (known && globalThis.crypto?.subtle) return (await hashed(uri, mtime)) !== known;
    return uri.path === file && profile.endedMs > 0 && mtime > profile.endedMs;
  } catch {
    return false; // it is gone: nothing is shown beside it
  }
}

function hashOf({ profile }: OpenProfile, file: string): string | null {
  const records: unknown[] = [profile.meta, ...profile.meta.processes];
  for (const record of records) {
    const sources = isObject(record) ? record.sources : null;
    if (isObject(sources) && Object.hasOwn(sources, file)) return String(sources[file]);
  }
  return null;
}

const digests = new Map<string, { mtime: number; digest: string }>();

/** SHA-256 in hexadecimal digits, read again only when the file was written. */
async function hashed(uri: vscode.Uri, mtime: number): Promise<string> {
  const known = digests.get(uri.toString());
  if (known?.mtime === mtime) return known.digest;
  const bytes = new Uint8Array(await vscode.workspace.fs.readFile(uri));
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const digest = [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  digests.set(uri.toString(), { mtime, digest });
  return digest;
}

function namedBy({ profile }: OpenProfile, file: string): boolean {
  return [...new Set(profile.tables.frames.file)].some((row) => profile.text(row) === file);
}
