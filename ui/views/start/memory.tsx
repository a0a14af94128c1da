// The start page of a file that tells of memory only: how much was alive at the most, and who held it.

import { share, size, visible } from "../../model/units";
import { PathEntry, placeText } from "../overview/path";
import type { Opened } from "../opened";
import { PoolsCard } from "../tables/pools";
import { Card } from "../widgets";

const MOST_PATHS = 8;

export function MemoryStart({ opened }: { opened: Opened }) {
  const peaks = opened.report.memory?.peaks ?? [];
  return (
    <>
      {peaks.map((peak) => {
        const [first] = peak.paths;
        const held = first?.values.peak_live_bytes ?? 0;
        const who = first?.place ? placeText(first.place) : (first?.operator ?? "");
        return (
          <>
            <section class="card verdict">
              <div class="step-figure">
                <div class="huge">{size(peak.peak_bytes)}</div>
                <div class="quiet">{visible(`at the peak, ${peak.device}`)}</div>
              </div>
              <div>
                <h2 class="sentence">
                  {visible(
                    `The largest part, ${size(held)} (${share(held, peak.peak_bytes)}), was allocated at ${who}`,
                  )}
                </h2>
                <div class="actions">
                  <button type="button" class="action" onClick={() => opened.go.page("timeline")}>
                    See it over time
                  </button>
                  <button type="button" class="action" onClick={() => opened.go.frame(0, "peak_live_bytes")}>
                    See it in the flame graph
                  </button>
                </div>
              </div>
            </section>
            <Card title="Alive at that moment" note="by call path" click="click to see one in the flame graph">
              <ol class="paths">
                {peak.paths.slice(0, MOST_PATHS).map((path) => (
                  <PathEntry
                    opened={opened}
                    path={path}
                    metric="peak_live_bytes"
                    total={{ sum: peak.peak_bytes, unit: "bytes" }}
                    most={held}
                  />
                ))}
              </ol>
            </Card>
          </>
        );
      })}
      {(opened.report.memory?.allocators ?? []).map((allocator) => (
        <PoolsCard allocator={allocator} />
      ))}
    </>
  );
}
