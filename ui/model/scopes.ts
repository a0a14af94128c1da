// For every node: whose line, module, phase and operator its measurements are booked on. The rules of
// python/leadline/analysis/scopes.py; -1 where there is none, and a thread begins anew.

import { Origin, origin } from "./frames";
import type { NodeRow, Profile } from "./profile";
import { FrameKindNames } from "./schema.generated";

export interface Scopes {
  /** The innermost Python frame of the user's own code; else of a package; else any. */
  user: Int32Array;
  module: Int32Array;
  phase: Int32Array;
  /** The outermost operator (or region where there is none) since the line, module or phase last changed. */
  outer: Int32Array;
  /** The nearest operator. */
  inner: Int32Array;
  thread: Int32Array;
  process: Int32Array;
}

const known = new WeakMap<Profile, Scopes>();

export function scopesOf(profile: Profile): Scopes {
  let made = known.get(profile);
  if (!made) known.set(profile, (made = scopes(profile)));
  return made;
}

function scopes(profile: Profile): Scopes {
  const { size, parent, frame, tables } = profile;
  const number = (kind: (typeof FrameKindNames)[number]) => FrameKindNames.indexOf(kind);
  const [python, moduleKind, phaseKind, operator, region] = [
    number("python"),
    number("module"),
    number("phase"),
    number("operator"),
    number("region"),
  ];
  const [threadKind, processKind] = [number("thread"), number("process")];
  const whose = frameOrigins(profile);
  const column = () => new Int32Array(size).fill(-1);
  const byOrigin = [column(), column(), column(), column()];
  const user = column();
  const [module, phase, inner, thread, process] = [column(), column(), column(), column(), column()];
  const outerOperator = column();
  const outerRegion = column();
  const outer = column();
  const inherited = [...byOrigin, module, phase, inner];
  for (let row = 0; row < size; row++) {
    const above = parent[row];
    const kind = tables.frames.kind[frame[row]];
    const border = kind === threadKind || kind === processKind;
    const begins = border || above < 0; // a thread begins anew: nothing above it counts
    if (!begins) for (let i = 0; i < inherited.length; i++) inherited[i][row] = inherited[i][above];
    thread[row] = kind === threadKind ? row : above < 0 ? -1 : thread[above];
    process[row] = kind === processKind ? row : above < 0 ? -1 : process[above];
    if (kind === python) byOrigin[whose[frame[row]]][row] = row;
    else if (kind === moduleKind) module[row] = row;
    else if (kind === phaseKind) phase[row] = row;
    else if (kind === operator) inner[row] = row;
    for (let one = Origin.user; one >= Origin.runtime && user[row] < 0; one--) user[row] = byOrigin[one][row];
    if (!border && kind !== moduleKind && kind !== phaseKind && user[row] !== row) {
      outerOperator[row] = above < 0 ? -1 : outerOperator[above];
      outerRegion[row] = above < 0 ? -1 : outerRegion[above];
      if (kind === operator && outerOperator[row] < 0) outerOperator[row] = row;
      if (kind === region && outerRegion[row] < 0) outerRegion[row] = row;
    }
    outer[row] = outerOperator[row] >= 0 ? outerOperator[row] : outerRegion[row];
  }
  return { user, module, phase, outer, inner, thread, process };
}

function frameOrigins(profile: Profile): Uint8Array {
  const { file } = profile.tables.frames;
  const ofFile = new Map<number, Origin>();
  return Uint8Array.from(file, (row) => {
    let of = ofFile.get(row);
    if (of === undefined) ofFile.set(row, (of = origin(profile.text(row))));
    return of;
  });
}

export function nameOf(profile: Profile, row: NodeRow): string {
  return row >= 0 ? profile.name(row) : "";
}
