// The trees of two profiles as one: rows of the aligned tree are paths of names. The rules of python/leadline/compare/align.py:
// lines, pids and folders are no part of a name, so moved code stays where it is; what one side alone has, below a row of both,
// is matched with what the other side alone has there where the names below agree: a renamed function or module.

import { baseName } from "./frames";
import type { FrameRow, NodeRow, Profile } from "./profile";

/** A row of the aligned tree. */
export type AlignedRow = number;

export interface Aligned {
  parent: Int32Array;
  /** Whose frame a row shows: the first profile's where it has the row. */
  frameOf: [side: number, frame: FrameRow][];
  /** Of each profile the row of every node. */
  rowOf: [Int32Array, Int32Array];
  /** Rows of both sides that have another name after: the frame that the second profile has there. */
  renamed: Map<AlignedRow, FrameRow>;
}

const MOST_RENAMES = 2_000;
const ROUNDS = 4;
const ALIKE = 0.5;
const RENAMED = new Set(["python", "module", "native", "region"]);

export function align(before: Profile, after: Profile): Aligned {
  const known = new Map<string, number>();
  const sides: [Side, Side] = [sideOf(before, known), sideOf(after, known)];
  let tree = joined(sides, known.size);
  const rekeyed = new Map<NodeRow, number>(); // nodes of the second side: the key that they have on the first
  for (let round = 0; round < ROUNDS; round++) {
    const pairs = renamesIn(tree);
    if (!pairs.size) break;
    const newName = new Map([...pairs].map(([old, made]) => [made, tree.key[old]]));
    tree.rowOf[1].forEach((row, node) => {
      const key = newName.get(row);
      if (key !== undefined) rekeyed.set(node, key);
    });
    for (const [node, key] of rekeyed) sides[1].key[node] = key;
    tree = joined(sides, known.size);
  }
  const renamed = new Map<AlignedRow, FrameRow>();
  for (const node of rekeyed.keys()) renamed.set(tree.rowOf[1][node], after.frame[node]);
  return { parent: Int32Array.from(tree.parent), frameOf: tree.frameOf, rowOf: tree.rowOf, renamed };
}

/** A profile and the key of every node. */
interface Side {
  profile: Profile;
  key: Int32Array;
}

interface Joined {
  parent: number[];
  key: number[];
  frameOf: [side: number, frame: FrameRow][];
  kind: string[];
  /** Bit 0: before has it; bit 1: after. */
  sides: number[];
  rowOf: [Int32Array, Int32Array];
}

function sideOf(profile: Profile, known: Map<string, number>): Side {
  const { frames, processes } = profile.tables;
  const process = new Map([...processes.node].map((node, row) => [profile.frame[node], row]));
  const ofFrame = new Int32Array(frames.kind.length);
  for (let frame = 0; frame < ofFrame.length; frame++) {
    const text = keyText(profile, frame, process.get(frame));
    let key = known.get(text);
    if (key === undefined) known.set(text, (key = known.size));
    ofFrame[frame] = key;
  }
  return { profile, key: Int32Array.from(profile.frame, (frame) => ofFrame[frame]) };
}

/** Kind, name, and file or class where they belong to the identity. */
function keyText(profile: Profile, frame: FrameRow, process: number | undefined): string {
  const kind = profile.kindOfFrame(frame);
  const name = profile.frameText("name", frame);
  if (kind === "python" && name.startsWith("<")) return `${kind} ${name} ${baseName(profile.frameText("file", frame))}`;
  if (kind === "module") return `${kind} ${name} ${profile.frameText("module", frame)}`;
  if (kind === "thread") return `${kind} ${name.replace(/\d+/g, "*")}`;
  if (kind !== "process") return `${kind} ${name}`;
  const rank = process === undefined ? -1 : profile.tables.processes.rank[process];
  if (rank >= 0) return `process rank ${rank}`;
  if (process === 0) return "process the program"; // however it was started
  return `process ${name
    .split(/\s+/)
    .map((word) => baseName(word))
    .join(" ")}`;
}

/** Nodes with one row above and one key are one row. */
function joined(sides: [Side, Side], keys: number): Joined {
  const { profile } = sides[0];
  const made: Joined = {
    parent: [-1],
    key: [sides[0].key[0]],
    frameOf: [[0, profile.frame[0]]],
    kind: ["root"],
    sides: [3],
    rowOf: [new Int32Array(profile.size), new Int32Array(sides[1].profile.size)],
  };
  const children = new Map<number, AlignedRow>();
  sides.forEach((side, which) => {
    const { parent, frame, size } = side.profile;
    const rows = made.rowOf[which];
    for (let node = 1; node < size; node++) {
      const above = rows[parent[node]];
      const place = above * keys + side.key[node];
      let row = children.get(place);
      if (row === undefined) {
        row = made.parent.push(above) - 1;
        children.set(place, row);
        made.key.push(side.key[node]);
        made.frameOf.push([which, frame[node]]);
        made.kind.push(side.profile.kindOfFrame(frame[node]));
        made.sides.push(0);
      }
      made.sides[row] |= 1 << which;
      rows[node] = row;
    }
  });
  return made;
}

/** Pairs of rows, of before alone and of after alone, that are one thing with two names. */
function renamesIn(tree: Joined): Map<AlignedRow, AlignedRow> {
  const places = new Map<string, [AlignedRow[], AlignedRow[]]>();
  let alone = 0;
  for (let row = 1; row < tree.parent.length && alone < 10 * MOST_RENAMES; row++) {
    if (tree.sides[row] === 3 || tree.sides[tree.parent[row]] !== 3 || !RENAMED.has(tree.kind[row])) continue;
    const place = `${tree.parent[row]} ${tree.kind[row]}`;
    const pair = places.get(place) ?? [[], []];
    places.set(place, pair);
    pair[tree.sides[row] - 1].push(row);
    alone++;
  }
  const found = new Map<AlignedRow, AlignedRow>();
  if (![...places.values()].some(([left, right]) => left.length && right.length)) return found;
  const children = childrenOf(tree.parent);
  for (const [left, right] of places.values()) {
    const free = [...right];
    for (const old of left) {
      const below = namesBelow(tree, children, old);
      let [best, score] = [-1, 0];
      free.slice(0, 50).forEach((made, at) => {
        const alike = dice(below, namesBelow(tree, children, made));
        if (alike >= ALIKE && alike >= score) [best, score] = [at, alike];
      });
      if (best >= 0) found.set(old, free.splice(best, 1)[0]);
      if (found.size >= MOST_RENAMES) return found;
    }
  }
  return found;
}

function childrenOf(parent: readonly number[]): Map<AlignedRow, AlignedRow[]> {
  const children = new Map<AlignedRow, AlignedRow[]>();
  for (let row = 1; row < parent.length; row++) {
    const list = children.get(parent[row]);
    if (list) list.push(row);
    else children.set(parent[row], [row]);
  }
  return children;
}

/** Keys of children and grandchildren: what a function calls tells it from others. */
function namesBelow(tree: Joined, children: Map<AlignedRow, AlignedRow[]>, row: AlignedRow): Set<number> {
  const near = (children.get(row) ?? []).slice(0, 200);
  const deeper = near.slice(0, 50).flatMap((child) => (children.get(child) ?? []).slice(0, 50));
  return new Set([...near, ...deeper].map((one) => tree.key[one]));
}

function dice(one: Set<number>, other: Set<number>): number {
  if (!one.size && !other.size) return 0;
  let both = 0;
  for (const key of one) if (other.has(key)) both++;
  return (2 * both) / (one.size + other.size);
}
