// The tab What if: what changes would do to a step of the open profile. Nothing is simulated before somebody looks.

import { useEffect, useState } from "preact/hooks";
import type { Changes } from "../../model/changes";
import { visible } from "../../model/units";
import type { Opened } from "../opened";
import { NoWindow, Nothing } from "../widgets";
import { ChangesView } from "./view";

type Answer = Changes | { trouble: string };

export function ChangesPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const { host, profile } = opened;
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (!shown || asked) return;
    setAsked(true);
    host.changes?.(0).then(setAnswer, (error: Error) => setAnswer({ trouble: error.message }));
  }, [shown]);
  if (!answer)
    return (
      <p role="status" aria-busy={asked} class="quiet empty">
        Simulating what changes would do …
      </p>
    );
  if (!("trouble" in answer)) return <ChangesView changes={answer} />;
  return profile.tables.events.node.length ? (
    <Nothing>{visible(answer.trouble)}</Nothing>
  ) : (
    <NoWindow profile={profile} so="and only one can be simulated with a change" />
  );
}
