// Where a step goes by line of the program, forward and backward apart; beside it the kernels in words and the memory at
// the peak. Figures are of one step.

import type { ComponentChildren } from "preact";
import type { KernelOfStep, Report, Start, WhereLine } from "../../model/report";
import { duration, number, percent, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Bar, Card, Named } from "../widgets";

const BESIDE = 4; // rows of a card that shares the column
const LEAST = 0.005; // of the step: what is less is no answer to where
const ROWS = 6;
const OTHERS: Record<string, string> = {
  "data loading": "region hatched",
  communication: "collective hatched",
  "outside of phases": "operator",
};
const BESIDE_RANKS = 3; // below a row a rank, so that the page ends where a small screen does

export function Where({ opened, start }: { opened: Opened; start: Start }) {
  const { report } = opened;
  const kernels = start.kernels.length > 0;
  const ranks = start.ranks.length > 2;
  const peaks = report.memory?.peaks.length ? report.memory.peaks : [];
  if (!start.where.length && !kernels && !peaks.length) return null;
  return (
    <div class="halves">
      {start.where.length ? <Lines opened={opened} start={start} /> : null}
      {kernels || peaks.length ? (
        <div class="column">
          {kernels ? (
            <Kernels opened={opened} start={start} most={ranks ? BESIDE_RANKS : peaks.length ? BESIDE : ROWS} />
          ) : null}
          {peaks.length ? (
            <Peak opened={opened} peak={peaks[0]} most={kernels ? 3 : ranks ? BESIDE_RANKS : ROWS} />
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function shownOf({ where, ranks }: Start): WhereLine[] {
  return where.filter(({ share }, at) => !at || share >= LEAST).slice(0, ranks.length > 2 ? BESIDE_RANKS : ROWS);
}

function Lines({ opened, start }: { opened: Opened; start: Start }) {
  const per = start.of === "step" ? "per step" : "of the run";
  const note = start.no_lines || (start.where_of === "time" ? per : `${start.where_of}, ${per}`);
  const backward = start.where.some((line) => line.backward_ns > 0);
  const most = Math.max(...start.where.map((line) => line.ns), 1);
  return (
    <Card title="Where" note={note}>
      <div class="scroll">
        <table class="data where">
          <thead>
            <tr>
              <th scope="col" class="text">
                <span class="offscreen">Line</span>
              </th>
              {backward ? <th scope="col">forward</th> : <th scope="col">time</th>}
              {backward ? <th scope="col">backward</th> : null}
              <th scope="col">{start.of === "step" ? "of the step" : "of the run"}</th>
              <th scope="col">
                <span class="offscreen">Bar</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shownOf(start).map((line) => (
              <tr class="link" onClick={() => opened.go.frame(line.node)}>
                <th scope="row" class="text">
                  <button type="button" class="row-name">
                    <Name line={line} />
                  </button>
                </th>
                <td>{firstFigure(line, backward)}</td>
                {backward ? <td>{line.backward_ns ? duration(line.backward_ns) : ""}</td> : null}
                <td>{percent(line.share)}</td>
                <td>
                  <Bar
                    parts={[
                      [line.forward_ns / most, "module"],
                      [line.backward_ns / most, "backward striped"],
                      [line.other_ns / most, OTHERS[line.phase] ?? "api"],
                    ]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** All but backward, with the name of a phase that has most of it; the bar has its parts. */
function firstFigure(line: WhereLine, backward: boolean): ComponentChildren {
  if (!backward) return duration(line.ns);
  const { forward_ns, other_ns } = line;
  if (other_ns <= forward_ns) return forward_ns ? duration(forward_ns + other_ns) : "";
  return (
    <span title={forward_ns ? `${duration(other_ns)} ${line.phase}, ${duration(forward_ns)} besides` : undefined}>
      {duration(forward_ns + other_ns)} <span class="quiet phase-of">{line.phase}</span>
    </span>
  );
}

function Name({ line }: { line: WhereLine }) {
  const { place } = line;
  if (!place)
    return (
      <>
        <b class="mono">
          <Named text={line.name} />
        </b>
        {line.what && !line.name.endsWith(line.what) ? (
          <span class="quiet what">
            <Named text={line.what} />
          </span>
        ) : null}
      </>
    );
  return (
    <>
      <b class="mono">{visible(place.line > 0 ? `${place.short}:${place.line}` : place.short)}</b>{" "}
      <span class="quiet mono">
        <Named text={place.function} />
      </span>
      {line.what ? (
        <span class="quiet what">
          <Named text={line.what} />
        </span>
      ) : null}
    </>
  );
}

function Kernels({ opened, start, most }: { opened: Opened; start: Start; most: number }) {
  const kernels = start.kernels.slice(0, most);
  const largest = Math.max(...kernels.map((one) => one.ns), 1);
  const sum = start.bars.at(-1)?.parts.filter((part) => part.group === "work") ?? [];
  const busy = sum.reduce((total, part) => total + part.ns, 0);
  const note = start.bars.length > 2 ? `busy ${duration(busy)} a step` : "";
  return (
    <Card title={`On the ${start.device || "device"}`} note={note}>
      <table class="data beside">
        <tbody>
          {kernels.map((one) => (
            <KernelRow opened={opened} kernel={one} largest={largest} />
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function KernelRow({ opened, kernel, largest }: { opened: Opened; kernel: KernelOfStep; largest: number }) {
  return (
    <tr class="link" onClick={() => opened.go.frame(kernel.node, "gpu_time")}>
      <th scope="row" class="text">
        <button type="button" class="row-name">
          <Named text={kernel.words} title={kernel.name} />
        </button>
      </th>
      <td class="quiet">{kernel.calls >= 0.5 ? `${number(Math.round(kernel.calls))} ×` : ""}</td>
      <td>{duration(kernel.ns)}</td>
      <td>
        <Bar parts={[[kernel.ns / largest, "kernel"]]} />
      </td>
    </tr>
  );
}

type PeakOf = NonNullable<Report["memory"]>["peaks"][number];

function Peak({ opened, peak, most }: { opened: Opened; peak: PeakOf; most: number }) {
  const held = peak.paths.slice(0, most);
  const bytes = (path: (typeof held)[number]) => path.values.peak_live_bytes ?? 0;
  const largest = Math.max(...held.map(bytes), 1);
  return (
    <Card title="Memory at the peak" note={`${size(peak.peak_bytes)} on ${peak.device}`}>
      <table class="data beside">
        <tbody>
          {held.map((path) => {
            const line = path.place ? `${path.place.short}:${path.place.line}` : path.module || path.operator;
            return (
              <tr class="link" onClick={() => opened.go.frame(path.node, "peak_live_bytes")}>
                <th scope="row" class="text">
                  <button type="button" class="row-name">
                    <b class="mono">
                      <Named text={line} />
                    </b>{" "}
                    <span class="quiet">
                      <Named text={path.place ? path.module || path.operator : ""} />
                    </span>
                  </button>
                </th>
                <td>{size(bytes(path))}</td>
                <td>{share(bytes(path), peak.peak_bytes)}</td>
                <td>
                  <Bar parts={[[bytes(path) / largest, "operator"]]} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Card>
  );
}
