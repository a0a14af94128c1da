// What lines and functions of source files cost: on themselves, and with all that they called.

import type { NodeRow, Profile } from "./profile";
import { scopesOf } from "./scopes";

export interface LineCost {
  /** What the line answers for: all measured below it before another line of the user's. */
  booked: number;
  /** With everything below; a line that calls itself counts once. */
  total: number;
  /** The call path that has most of it. */
  node: NodeRow;
}

export interface FunctionCost {
  name: string;
  firstLine: number;
  total: number;
  node: NodeRow;
}

export interface FileCosts {
  file: string;
  lines: Map<number, LineCost>;
  functions: FunctionCost[];
}

/** By file, in the metric's unit; lines that measured nothing are absent. */
export function fileCosts(profile: Profile, metric: string): Map<string, FileCosts> {
  const { own, whole } = profile.metrics.values(metric);
  const { file, line, first_line: first, name } = profile.tables.frames;
  const python = pythonFrames(profile);
  const lineKeys = keyed(python, (frame) => `${file[frame]}:${line[frame]}`);
  const functionKeys = keyed(python, (frame) => `${file[frame]}:${first[frame]}:${name[frame]}`);
  const lineSums = outermost(profile, lineKeys, whole);
  const functionSums = outermost(profile, functionKeys, whole);
  const { user } = scopesOf(profile);
  const booked = new Float64Array(lineKeys.count);
  for (let row = 0; row < profile.size; row++)
    if (user[row] >= 0) booked[lineKeys.of[profile.frame[user[row]]]] += own[row];

  const made = new Map<string, FileCosts>();
  const seenLine = new Uint8Array(lineKeys.count);
  const seenFunction = new Uint8Array(functionKeys.count);
  for (let frame = 0; frame < python.length; frame++) {
    if (!python[frame]) continue;
    const key = lineKeys.of[frame];
    const total = lineSums.total[key];
    if (!(total > 0) && !(booked[key] > 0)) continue;
    const path = profile.text(file[frame]);
    if (!path) continue;
    let costs = made.get(path);
    if (!costs) made.set(path, (costs = { file: path, lines: new Map(), functions: [] }));
    if (!seenLine[key] && line[frame] > 0) {
      seenLine[key] = 1;
      costs.lines.set(line[frame], { booked: booked[key], total, node: lineSums.node[key] });
    }
    const whole = functionKeys.of[frame];
    if (!seenFunction[whole] && first[frame] > 0) {
      seenFunction[whole] = 1;
      const { total: sums, node } = functionSums;
      costs.functions.push({
        name: profile.text(name[frame]),
        firstLine: first[frame],
        total: sums[whole],
        node: node[whole],
      });
    }
  }
  return made;
}

function pythonFrames(profile: Profile): Uint8Array {
  const { kind } = profile.tables.frames;
  const made = new Uint8Array(kind.length);
  for (let frame = 0; frame < kind.length; frame++) made[frame] = profile.kindOfFrame(frame) === "python" ? 1 : 0;
  return made;
}

interface Keys {
  /** Number of the key of every frame; -1 where it has none. */
  of: Int32Array;
  count: number;
}

function keyed(wanted: Uint8Array, key: (frame: number) => string): Keys {
  const numbers = new Map<string, number>();
  const of = new Int32Array(wanted.length).fill(-1);
  for (let frame = 0; frame < wanted.length; frame++) {
    if (!wanted[frame]) continue;
    const text = key(frame);
    let number = numbers.get(text);
    if (number === undefined) numbers.set(text, (number = numbers.size));
    of[frame] = number;
  }
  return { of, count: numbers.size };
}

/** Sums of `whole` over the nodes of each key that have none of the same key above them. */
function outermost(profile: Profile, keys: Keys, whole: Float64Array): { total: Float64Array; node: Int32Array } {
  const total = new Float64Array(keys.count);
  const node = new Int32Array(keys.count).fill(-1);
  const open = new Int32Array(keys.count);
  const stack: number[] = profile.size ? [0] : [];
  while (stack.length) {
    const entry = stack.pop() as number;
    const row = entry < 0 ? ~entry : entry;
    const key = keys.of[profile.frame[row]];
    if (entry < 0) {
      open[key] -= 1; // all below it has been seen
      continue;
    }
    if (key >= 0) {
      if (open[key] === 0) {
        total[key] += whole[row];
        if (node[key] < 0 || whole[row] > whole[node[key]]) node[key] = row;
      }
      open[key] += 1;
      stack.push(~row);
    }
    for (let i = profile.childStart[row]; i < profile.childStart[row + 1]; i++) stack.push(profile.childRows[i]);
  }
  return { total, node };
}
