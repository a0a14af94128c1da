// The second profile, from after a change: read when somebody first wants it, and what it has in common with the first.

import { useMemo, useRef, useState } from "preact/hooks";
import { diffOf, type Diff } from "../model/diff";
import type { Profile } from "../model/profile";
import { openProfile } from "../model/reader";
import type { Host } from "./host";

export interface Comparison {
  /** Null until another profile is there. */
  diff: Diff | null;
  /** Name of the profile from after the change. */
  name: string;
  /** What hinders reading it, or that it is being read. */
  said: string;
  reading: boolean;
  /** Whether there is a second profile to look at, read or not. */
  possible: boolean;
  load(name: string, bytes: () => Promise<Uint8Array>): void;
  /** Reads the one that was given with the first. */
  wanted(): void;
}

const READING = "Reading …";

export function useComparison(host: Host, profile: Profile): Comparison {
  const [other, setOther] = useState<{ profile: Profile; name: string } | null>(null);
  const [said, say] = useState("");
  const asked = useRef(false);
  const diff = useMemo(() => (other ? diffOf(profile, other.profile) : null), [other]);
  const load = async (name: string, bytes: () => Promise<Uint8Array>) => {
    asked.current = true;
    say(READING);
    try {
      setOther({ profile: await openProfile(await bytes()), name });
      say("");
    } catch (error) {
      say((error as Error).message);
    }
  };
  return {
    diff,
    name: other?.name ?? "",
    said,
    reading: said === READING,
    possible: other !== null || host.names.length > 1,
    load: (name, bytes) => void load(name, bytes),
    wanted() {
      if (!asked.current && host.names.length > 1) void load(host.names[1], () => host.bytes(1));
    },
  };
}
