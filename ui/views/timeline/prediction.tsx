// Which predicted timeline stands below the measured one, where there is a Python that predicts.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Chosen, Predicted } from "../../model/predicted";
import { visible } from "../../model/units";
import type { Opened } from "../opened";

const NONE = "";

export function PredictionChoice({ opened, choose }: { opened: Opened; choose(chosen: Chosen | null): void }) {
  const { host } = opened;
  const [known, setKnown] = useState<Predicted | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState("");
  const asked = useRef(0);
  const ask = async (name: string) => {
    const mine = ++asked.current;
    setBusy(true);
    try {
      const found = await host.predicted?.(0, name);
      if (!found || mine !== asked.current) return;
      setKnown(found);
      setTrouble(found.trouble || found.chosen?.trouble || "");
      choose(found.chosen?.lanes.length ? found.chosen : null);
    } catch (error) {
      setTrouble((error as Error).message);
    } finally {
      if (mine === asked.current) setBusy(false);
    }
  };
  useEffect(() => {
    if (host.predictedAtOnce) void ask("");
  }, []);
  if (!host.predicted) return null;
  const none = () => {
    asked.current++;
    setBusy(false);
    setTrouble("");
    setKnown((old) => old && { ...old, chosen: null });
    choose(null);
  };
  const chosen = known?.chosen ?? null;
  return (
    <>
      {known?.scenarios.length ? (
        <select
          aria-label="Predicted timeline"
          title="What leadline whatif predicts, below what was measured"
          value={chosen?.title ?? NONE}
          onChange={(event) => (event.currentTarget.value === NONE ? none() : void ask(event.currentTarget.value))}
        >
          <option value={NONE}>measured only</option>
          {known.scenarios.map((one) => (
            <option value={one.title}>{visible(`${one.title}: ${one.said}`)}</option>
          ))}
        </select>
      ) : (
        <button type="button" class="plain" disabled={busy} onClick={() => void ask("")}>
          What if …
        </button>
      )}
      <span class="quiet small" role="status" aria-busy={busy}>
        {busy ? "Predicting …" : visible(trouble)}
      </span>
    </>
  );
}
