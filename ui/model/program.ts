// The program that a profile is of, and how its files are named.

import { shortNames } from "./frames";
import type { Profile } from "./profile";

export function programOf(profile: Profile): string {
  const { argv } = profile.meta.program;
  const words = Array.isArray(argv) ? argv.filter((word): word is string => typeof word === "string") : [];
  const said = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`));
  const { name } = profile.tables.processes;
  return said.join(" ") || (name.length ? profile.text(name[0]) : "") || "unknown program";
}

/** File names as they are shown, relative to where the program ran. */
export function shownFiles(profile: Profile): Map<string, string> {
  const files = new Set<number>(profile.tables.frames.file);
  const { cwd } = profile.meta.program;
  return shortNames(
    [...files].map((row) => profile.text(row)),
    typeof cwd === "string" ? cwd : "",
  );
}
