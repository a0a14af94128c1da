// Which file of a workspace a file of a profile is: a profile is looked at where its program may never have run. Pure.

import { Origin, origin, packagePath } from "../model/frames";

/** A start of paths in profiles, and what stands in its place here. */
export interface Mapping {
  from: string;
  to: string;
}

const parts = (path: string) => path.replaceAll("\\", "/").split("/").filter(Boolean);

/** How many folders and names, from the end, two paths share. */
export function common(a: string, b: string): number {
  const [one, other] = [parts(a), parts(b)];
  let shared = 0;
  while (
    shared < one.length &&
    shared < other.length &&
    one[one.length - 1 - shared] === other[other.length - 1 - shared]
  )
    shared += 1;
  return shared;
}

/** The candidates that share most with `file`; none where that is too little to be the same file. Library code must agree
 * from its package on, since names such as `module.py` are everywhere. */
export function closest(file: string, candidates: readonly string[]): string[] {
  const least = origin(file) === Origin.user ? 1 : Math.max(1, parts(packagePath(file)).length);
  const shared = candidates.map((one) => common(file, one));
  const most = Math.max(0, ...shared);
  return most < least ? [] : candidates.filter((_, i) => shared[i] === most);
}

/** `file` relative to the folder its program ran in; empty where it is not below. */
export function below(file: string, folder: string): string {
  const start = folder.replace(/[\\/]+$/, "") + "/";
  return folder && file.startsWith(start) ? file.slice(start.length) : "";
}

export function mapped(file: string, mappings: readonly Mapping[]): string[] {
  return mappings.filter(({ from }) => file.startsWith(from)).map(({ from, to }) => to + file.slice(from.length));
}

/** What a user's choice says about other files: `/job/src/a/b.py` chosen as `/home/me/src/a/b.py` maps `/job/` to `/home/me/`. */
export function learned(file: string, chosen: string): Mapping | null {
  const shared = common(file, chosen);
  if (!shared) return null;
  const tail = parts(file).slice(-shared).join("/");
  return { from: file.slice(0, file.length - tail.length), to: chosen.slice(0, chosen.length - tail.length) };
}

/** A path on another machine: asking for it would send this user's credentials there. */
export function isRemote(file: string): boolean {
  return /^[\\/]{2}/.test(file);
}

export function isAbsolute(file: string): boolean {
  return file.startsWith("/") || /^[A-Za-z]:[\\/]/.test(file);
}
