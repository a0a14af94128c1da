// Who held tensor memory at the moment of largest use, and what compiled programs hold inside.

import type { CompiledProgram } from "../../model/report";
import { number, size, visible } from "../../model/units";
import { PathEntry, placeText } from "../overview/path";
import type { Opened } from "../opened";
import { Card, Nothing } from "../widgets";
import { PoolsCard } from "./pools";

export function MemoryTable({ opened }: { opened: Opened }) {
  const programs = (opened.report.programs ?? []).map((program) => <Inside opened={opened} program={program} />);
  const { memory } = opened.report;
  if (!memory)
    return (
      <>
        <h2>Memory</h2>
        <Nothing>Tensor memory was not measured in this run.</Nothing>
        {programs}
      </>
    );
  const facts = `${size(memory.allocated_bytes)} in ${number(memory.allocations)} allocations, ${size(memory.freed_bytes)} freed in ${number(memory.frees)}`;
  return (
    <>
      <div class="toolbar">
        <h2>Tensor memory</h2>
        <span class="quiet">{facts}</span>
      </div>
      {(memory.allocators ?? []).map((allocator) => (
        <PoolsCard allocator={allocator} />
      ))}
      {memory.peaks.map((peak) => (
        <Card
          title={`Peak ${size(peak.peak_bytes)} on ${peak.device}`}
          note="call paths whose memory was alive at that moment"
          click="click to see one in the flame graph"
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
      {programs}
    </>
  );
}

function Inside({ opened, program }: { opened: Opened; program: CompiledProgram }) {
  const metric = opened.report.path_metric;
  const { buffers, temporaries_bytes: all } = program;
  const where = program.place ? `, called at ${placeText(program.place)}` : "";
  const beside = `${size(program.arguments_bytes)} of arguments and ${size(program.results_bytes)} of results beside it`;
  const said = program.at_peak
    ? "what is alive when its temporary memory is fullest"
    : "the largest parts of its temporary memory";
  return (
    <Card
      title={visible(`Inside ${program.name}: ${size(all)}`)}
      note={visible(`planned by the compiler for one run${where}; ${beside}; ${said}`)}
    >
      <ol class="paths">
        {buffers.map((one) => (
          <PathEntry
            opened={opened}
            path={{
              place: one.place,
              module: "",
              module_class: "",
              modules: 0,
              phase: "",
              operator: one.operation,
              calls: 0,
              paths: 1,
              values: { [metric]: one.bytes },
              node: one.node ?? program.node,
            }}
            metric={metric}
            total={{ sum: all, unit: "bytes" }}
            most={Math.max(...buffers.map((of) => of.bytes))}
          />
        ))}
      </ol>
    </Card>
  );
}
