// The second profile, from after a change, and what Python says of both: read when somebody first wants it.

import { useRef, useState } from "preact/hooks";
import { diffOf, type Diff } from "../model/diff";
import type { Profile } from "../model/profile";
import { openProfile } from "../model/reader";
import type { Host } from "./host";

export interface Comparison {
  /** Null until it has been read. */
  diff: Diff | null;
  /** Name of the profile from after the change. */
  name: string;
  /** What hinders reading it, or that it is being read. */
  said: string;
  reading: boolean;
  /** Whether there is a second profile to look at, read or not. */
  possible: boolean;
  wanted(): void;
}

const READING = "Comparing …";
const NO_PYTHON = "Comparing two profiles needs Python with Leadline; `leadline view BEFORE AFTER` does it.";

export function useComparison(host: Host, profile: Profile): Comparison {
  const [diff, setDiff] = useState<Diff | null>(null);
  const [said, say] = useState("");
  const asked = useRef(false);
  const possible = host.names.length > 1;
  const read = async () => {
    say(READING);
    try {
      const [compared, other] = await Promise.all([host.comparison?.(), host.bytes(1).then(openProfile)]);
      if (compared) setDiff(diffOf(profile, other, compared.found, compared.tree));
      say(compared ? "" : NO_PYTHON);
    } catch (error) {
      say((error as Error).message);
    }
  };
  return {
    diff,
    name: host.names[1] ?? "",
    said,
    reading: said === READING,
    possible,
    wanted() {
      if (asked.current || !possible) return;
      asked.current = true;
      void read();
    },
  };
}
