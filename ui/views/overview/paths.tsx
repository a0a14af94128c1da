// The hottest call paths of the whole run by one metric.

import { useState } from "preact/hooks";
import { metricName, number, share } from "../../model/units";
import type { Opened } from "../opened";
import { Card, Nothing } from "../widgets";
import { PathEntry } from "./path";

export function HotPaths({ opened }: { opened: Opened }) {
  const { report } = opened;
  const [count, show] = useState(8);
  const metric = report.path_metric;
  const note = report.focus
    ? `only paths through /${report.focus.pattern}/, ${share(report.focus.share, 1)} of all`
    : "your line, and what it ran";
  return (
    <Card
      title={`Hottest call paths by ${metricName(metric)}`}
      note={note}
      click={report.focus ? undefined : "click to see it in the flame graph"}
    >
      {report.paths.length ? (
        <ol class="paths">
          {report.paths.slice(0, count).map((path) => (
            <PathEntry
              opened={opened}
              path={path}
              metric={metric}
              total={report.totals[metric]}
              most={report.paths[0].values[metric] ?? 1}
            />
          ))}
        </ol>
      ) : (
        <Nothing>Nothing was measured on these paths.</Nothing>
      )}
      {report.paths.length > count ? (
        <button type="button" class="plain" onClick={() => show(report.paths.length)}>
          Show {number(report.paths.length - count)} more
        </button>
      ) : null}
    </Card>
  );
}
