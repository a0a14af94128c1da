// The hottest call paths: measurements grouped under the user's line, the module (numbered layers are one), the phase and the
// outermost operator. The rules of python/leadline/analysis/hotpaths.py.

import { foldedName } from "./frames";
import type { Profile } from "./profile";
import type { HotPath } from "./report";
import { nameOf, scopesOf } from "./scopes";
import { shownFiles } from "./summary";

interface Group {
  row: number;
  most: number;
  sum: number;
  rows: number[];
}

export function hotPaths(profile: Profile, metric: string, top: number): HotPath[] {
  const scopes = scopesOf(profile);
  const { own } = profile.metrics.values(metric);
  const { frames } = profile.tables;
  const line = numbered(profile, (frame) => `${frames.file[frame]}:${frames.line[frame]}:${frames.name[frame]}`);
  const pattern = numbered(profile, (frame) => foldedName(profile.frameText("name", frame)));
  const at = (numbers: (frame: number) => number, row: number) => (row < 0 ? 0 : numbers(profile.frame[row]));
  const name = (row: number) => (row < 0 ? 0 : frames.name[profile.frame[row]] + 1);
  const pairs = [new Map<number, number>(), new Map<number, number>(), new Map<number, number>()];
  const pair = (which: number, a: number, b: number) => {
    const key = a * 4294967296 + b;
    let number = pairs[which].get(key);
    if (number === undefined) pairs[which].set(key, (number = pairs[which].size));
    return number;
  };
  const groups = new Map<number, Group>();
  for (let row = 0; row < profile.size; row++) {
    if (!(own[row] > 0)) continue;
    const where = pair(0, at(line, scopes.user[row]), at(pattern, scopes.module[row]));
    const key = pair(2, where, pair(1, name(scopes.phase[row]), name(scopes.outer[row])));
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { row, most: 0, sum: 0, rows: [] }));
    group.sum += own[row];
    group.rows.push(row);
    if (own[row] > group.most) [group.row, group.most] = [row, own[row]];
  }
  const best = [...groups.values()].sort((a, b) => b.sum - a.sum || a.rows[0] - b.rows[0]).slice(0, top);
  const short = shownFiles(profile);
  return best.map((group) => {
    const { row, rows, sum } = group;
    const user = scopes.user[row];
    const frame = user >= 0 ? profile.frame[user] : 0;
    const file = profile.frameText("file", frame);
    const called = profile.frameText("name", frame);
    const modules = [...new Set(rows.map((one) => nameOf(profile, scopes.module[one])))].filter(Boolean).sort();
    const outers = new Set(rows.map((one) => scopes.outer[one]));
    const calls = profile.metrics.values("calls").own;
    const outer = scopes.outer[row];
    return {
      place:
        user < 0
          ? null
          : {
              file,
              short: short.get(file) ?? file,
              line: profile.line(frame),
              function: called === "<module>" ? "" : called,
            },
      module: modules.length > 1 ? foldedName(modules[0]) : (modules[0] ?? ""),
      module_class: scopes.module[row] >= 0 ? profile.frameText("module", profile.frame[scopes.module[row]]) : "",
      modules: modules.length,
      phase: nameOf(profile, scopes.phase[row]),
      operator: nameOf(profile, outer),
      calls: [...outers].reduce((all, one) => all + (one >= 0 ? calls[one] : 0), 0),
      paths: rows.length,
      values: { [metric]: sum },
      node: outer >= 0 ? outer : row,
    };
  });
}

/** For a frame the number, from 1, that frames with the same key share; made when first asked. */
function numbered(profile: Profile, key: (frame: number) => string): (frame: number) => number {
  const numbers = new Int32Array(profile.tables.frames.kind.length);
  const known = new Map<string, number>();
  return (frame) => {
    if (!numbers[frame]) {
      const text = key(frame);
      let number = known.get(text);
      if (number === undefined) known.set(text, (number = known.size + 1));
      numbers[frame] = number;
    }
    return numbers[frame];
  };
}
