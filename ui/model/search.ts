// Search over all frames: a text or, between slashes or where it has signs of one, a regular expression.

import { foldedName } from "./frames";
import type { Profile } from "./profile";

export interface Found {
  /** 1 for every frame that was found. */
  frames: Uint8Array;
  /** What the found frames have with everything below them, each part of the tree counted once; and in how many places. */
  sum: number;
  count: number;
}

export class BadPattern extends Error {}

/** The test a search text stands for: `/.../` is a regular expression, anything else a part of the text. Raises BadPattern. */
export function matcher(text: string): (candidate: string) => boolean {
  const slashes = /^\/(.+)\/$/.exec(text);
  if (slashes) {
    try {
      const pattern = new RegExp(slashes[1], "iu");
      return (candidate) => pattern.test(candidate);
    } catch (error) {
      throw new BadPattern(`not a regular expression: ${(error as Error).message.replace(/^.*: /, "")}`);
    }
  }
  const wanted = text.toLowerCase();
  return (candidate) => candidate.toLowerCase().includes(wanted);
}

export class Search {
  private readonly texts = new Map<string, string[]>();

  constructor(private readonly profile: Profile) {}

  /** 1 for every frame that is found; null for an empty text. Raises BadPattern. */
  frames(text: string): Uint8Array | null {
    const wanted = text.trim();
    if (!wanted) return null;
    const matches = matcher(wanted);
    const frames = new Uint8Array(this.profile.tables.frames.kind.length);
    this.candidates().forEach((candidate, frame) => {
      if (matches(candidate)) frames[frame] = 1;
    });
    return frames;
  }

  /** Null for an empty text. Raises BadPattern. */
  find(text: string, metric: string): Found | null {
    const frames = this.frames(text);
    if (!frames) return null;
    const { parent, frame, size } = this.profile;
    const { whole } = this.profile.metrics.values(metric);
    const inside = new Uint8Array(size);
    let sum = 0;
    let count = 0;
    for (let row = 1; row < size; row++) {
      if (inside[parent[row]]) inside[row] = 1;
      else if (frames[frame[row]] && whole[row] > 0) {
        inside[row] = 1;
        sum += whole[row];
        count += 1;
      }
    }
    return { frames, sum, count };
  }

  /** What of each frame is searched: name, folded name, class and place. */
  private candidates(): string[] {
    const known = this.texts.get("all");
    if (known) return known;
    const { name, module, file, line } = this.profile.tables.frames;
    const made: string[] = [];
    for (let i = 0; i < name.length; i++) {
      const text = this.profile.text(name[i]);
      const folded = foldedName(text);
      made.push(
        `${text} ${folded === text ? "" : folded} ${this.profile.text(module[i])} ${this.profile.text(file[i])}:${line[i]}`,
      );
    }
    this.texts.set("all", made);
    return made;
  }
}
