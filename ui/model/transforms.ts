// What somebody does to the tree while looking at it: leave a part out, merge a frame into its callers, look at one function or
// one place alone. Pure; an address can say it.

import { baseName, foldedName } from "./frames";
import type { FrameRow, NodeRow, Profile } from "./profile";
import { pathText, rowOfPath } from "./same_path";

export const TRANSFORMS = {
  focus: "only below this place",
  function: "only this frame, wherever it is called",
  merge: "merged into its callers",
  drop: "left out with all below it",
} as const;
export type TransformKind = keyof typeof TRANSFORMS;

export interface Transform {
  kind: TransformKind;
  /** A path for `focus`, else what tells a frame from others. */
  of: string;
  name: string;
}

/** What tells a frame from others in every file of the program; layers of one class are one. */
export function frameKey(profile: Profile, frame: FrameRow): string {
  const file = profile.frameText("file", frame);
  const place = file ? ` ${baseName(file)}:${profile.line(frame)}` : "";
  return `${profile.kindOfFrame(frame)} ${foldedName(profile.frameText("name", frame))}${place}`;
}

export function transformOf(profile: Profile, kind: TransformKind, row: NodeRow, name: string): Transform {
  const of = kind === "focus" ? pathText(profile, row) : frameKey(profile, profile.frame[row]);
  return { kind, of, name };
}

/** `drop operator aten::mm`; `focus 1a2b.3c name of the place`. */
export function transformText({ kind, of, name }: Transform): string {
  return `${kind} ${of}${kind === "focus" ? ` ${name}` : ""}`;
}

/** Null for what makes no sense. */
export function transformFrom(text: string): Transform | null {
  const [kind, first, ...rest] = text.slice(0, 4000).split(" ");
  if (!Object.hasOwn(TRANSFORMS, kind) || !first) return null;
  if (kind === "focus") return { kind, of: first, name: rest.join(" ") || "a place" };
  return rest.length ? { kind: kind as TransformKind, of: [first, ...rest].join(" "), name: rest.join(" ") } : null;
}

export interface Transformed {
  /** Where the view begins: rows of which none lies below another. Null: at the root. */
  roots: NodeRow[] | null;
  /** 1 for rows of a frame that is merged into its callers. */
  merged: Uint8Array;
  /** 1 for rows that are drawn at all. */
  inside: Uint8Array;
  /** Topmost rows that are left out. */
  dropped: NodeRow[];
}

/** Null where there is nothing to do. */
export function transformed(profile: Profile, transforms: readonly Transform[]): Transformed | null {
  if (!transforms.length) return null;
  const { size, parent, frame } = profile;
  const keys = new Map<FrameRow, string>();
  const keyOf = (row: NodeRow) => {
    let key = keys.get(frame[row]);
    if (key === undefined) keys.set(frame[row], (key = frameKey(profile, frame[row])));
    return key;
  };
  const merged = new Uint8Array(size);
  const gone = new Uint8Array(size);
  let below: Uint8Array | null = null;
  let roots: NodeRow[] | null = null;
  for (const { kind, of } of transforms) {
    if (kind === "merge") for (let row = 1; row < size; row++) if (keyOf(row) === of) merged[row] = 1;
    if (kind === "drop") for (let row = 1; row < size; row++) if (gone[parent[row]] || keyOf(row) === of) gone[row] = 1;
    if (kind !== "focus" && kind !== "function") continue;
    const wanted = kind === "focus" ? rowOfPath(profile, of) : null;
    const outer: Uint8Array | null = below;
    below = new Uint8Array(size);
    roots = [];
    for (let row = 1; row < size; row++) {
      if (below[parent[row]]) below[row] = 1;
      else if ((!outer || outer[row]) && (kind === "focus" ? row === wanted : keyOf(row) === of)) {
        below[row] = 1;
        roots.push(row);
      }
    }
  }
  const inside = new Uint8Array(size);
  const dropped: NodeRow[] = [];
  for (let row = 0; row < size; row++) {
    inside[row] = Number(!gone[row] && (!below || below[row] === 1));
    if (gone[row] && !gone[parent[row]]) dropped.push(row);
  }
  return { roots, merged, inside, dropped };
}
