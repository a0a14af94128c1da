// Which predicted timelines stand below the measured one, where there is a Python that predicts: one of many scenarios, or
// several beside each other.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Chosen, Predicted } from "../../model/predicted";
import { visible } from "../../model/units";
import type { Opened } from "../opened";

const MOST_CHOSEN = 4;

interface Props {
  opened: Opened;
  chosen: readonly Chosen[];
  choose(chosen: Chosen[]): void;
}

export function PredictionChoice({ opened, chosen, choose }: Props) {
  const { host } = opened;
  const [known, setKnown] = useState<Predicted | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  const asked = useRef(0);
  const now = useRef(chosen);
  now.current = chosen;
  const put = (list: Chosen[]) => {
    now.current = list; // before the page is drawn again the next may be there
    choose(list);
  };
  const ask = async (name: string) => {
    const mine = ++asked.current;
    setBusy(true);
    try {
      const found = await host.predicted?.(0, name);
      if (!found || mine !== asked.current) return;
      setKnown(found);
      setTrouble(found.trouble || found.chosen?.trouble || "");
      const { chosen: made } = found;
      if (made?.lanes.length) put([...now.current.filter((one) => one.title !== made.title), made]);
    } catch (error) {
      setTrouble((error as Error).message);
    } finally {
      if (mine === asked.current) setBusy(false);
    }
  };
  useEffect(() => {
    const atHand = host.predictedAtOnce ?? [];
    void (async () => {
      for (const name of atHand) await ask(name);
    })();
  }, []);
  if (!host.predicted) return null;
  const without = (title: string) => {
    asked.current++;
    setBusy(false);
    setTrouble("");
    put(now.current.filter((one) => one.title !== title));
  };
  const left = (known?.scenarios ?? []).filter((one) => chosen.every(({ title }) => title !== one.title));
  const more = chosen.length < MOST_CHOSEN ? left : [];
  return (
    <>
      {!known?.scenarios.length ? (
        <button type="button" class="plain" disabled={busy} onClick={() => void ask("")}>
          What if …
        </button>
      ) : more.length ? (
        <select
          aria-label="Predicted timeline"
          title="What leadline whatif predicts, below what was measured"
          value=""
          onChange={(event) => void (event.currentTarget.value && ask(event.currentTarget.value))}
        >
          <option value="">{chosen.length ? "and what if …" : "What if …"}</option>
          {more.map((one) => (
            <option value={one.title}>{visible(`${one.title}: ${one.said}`)}</option>
          ))}
        </select>
      ) : null}
      {chosen.map((one) => (
        <button
          type="button"
          class="chip predicted"
          title={visible(`${one.said}. ${one.assumptions.join(" ")}`)}
          aria-label={visible(`Leave out ${one.title}`)}
          onClick={() => without(one.title)}
        >
          {visible(one.title)} ×
        </button>
      ))}
      <span class="quiet small" role="status" aria-busy={busy}>
        {busy ? "Predicting …" : visible(trouble)}
      </span>
    </>
  );
}
