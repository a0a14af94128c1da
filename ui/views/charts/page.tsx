// Curves over the time of the window.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { chartsOf } from "../../model/series";
import type { Opened } from "../opened";
import { Card, NoWindow } from "../widgets";
import { Plot } from "./plot";

export function ChartsPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  return seen.current ? <Shown opened={opened} /> : null;
}

function Shown({ opened }: { opened: Opened }) {
  const charts = useMemo(() => chartsOf(opened.profile), [opened.profile]);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const change = () => setTheme((old) => old + 1);
    addEventListener("themechange", change);
    return () => removeEventListener("themechange", change);
  }, []);
  return (
    <>
      <h2>Over time</h2>
      {charts.length ? (
        charts.map((chart) => (
          <Card key={`${chart.title} ${theme}`} title={chart.title} note={chart.note}>
            <Plot opened={opened} chart={chart} />
          </Card>
        ))
      ) : (
        <NoWindow profile={opened.profile} so="so nothing is known over time" />
      )}
    </>
  );
}
