// Who held tensor memory at the moment of largest use.

import { number, size } from "../../model/units";
import { PathEntry } from "../overview/path";
import type { Opened } from "../opened";
import { Card, Nothing } from "../widgets";

export function MemoryTable({ opened }: { opened: Opened }) {
  const { memory } = opened.report;
  if (!memory)
    return (
      <>
        <h2>Memory</h2>
        <Nothing>Tensor memory was not measured in this run.</Nothing>
      </>
    );
  const facts = `${size(memory.allocated_bytes)} in ${number(memory.allocations)} allocations, ${size(memory.freed_bytes)} freed in ${number(memory.frees)}`;
  return (
    <>
      <div class="toolbar">
        <h2>Tensor memory</h2>
        <span class="quiet">{facts}</span>
      </div>
      {memory.peaks.map((peak) => (
        <Card
          title={`Peak ${size(peak.peak_bytes)} on ${peak.device}`}
          note="call paths whose memory was alive at that moment; click to see one in the flame graph"
        >
          <ol class="paths">
            {peak.paths.slice(0, 40).map((path) => (
              <PathEntry
                opened={opened}
                path={path}
                metric="peak_live_bytes"
                total={{ sum: peak.peak_bytes, unit: "bytes" }}
                most={peak.paths[0].values.peak_live_bytes}
              />
            ))}
          </ol>
        </Card>
      ))}
      {memory.peaks.length ? null : <Nothing>No moment of largest use was recorded.</Nothing>}
    </>
  );
}
