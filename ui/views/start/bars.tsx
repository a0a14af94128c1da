// One step as bars that add up to it: by phase, by what the critical thread did, by what the device did, and a row a rank.
// A hatched part is waiting or idle; backward is striped, so neither is told by hue alone.

import type { RankBar, Start, StepBar, StepPart } from "../../model/report";
import { duration, percent, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Card, cssWidth, Named } from "../widgets";

/** The kind whose colour a part has. */
const COLOURS: Record<string, string> = {
  forward: "module",
  backward: "backward",
  optimizer: "api",
  "data loading": "region",
  data: "region",
  compile: "collective",
  other: "operator",
  products: "operator",
  transforms: "operator",
  decompositions: "operator",
  "matrix product": "operator",
  convolution: "operator",
  attention: "module",
  moves: "copy",
  copy: "copy",
  random: "kernel",
  python: "python",
  imports: "python",
  calling: "python",
  autograd: "phase",
  core: "runnable",
  device: "kernel",
  ranks: "collective",
  communication: "collective",
  launch: "idle",
  "element-wise": "copy",
  normalisation: "region",
};
const LETTER = 0.0062; // of a bar as wide as a usual window's
const NARROW = 2; // how many times as wide a usual window's bar is as that of a narrow one
const EDGES = 2; // letters' worth of room
const SEEN = 0.005; // of the bar: what is narrower has its words in the tooltip alone

export function StepBars({ opened, start }: { opened: Opened; start: Start }) {
  const whole = start.of === "step" ? "One step" : "The run";
  const scaled = start.bars.some((bar) => bar.scaled) ? "; phases of several threads are scaled to it" : "";
  const note = `adds up to ${duration(start.wall_ns)}${scaled}`;
  return (
    <Card title={whole} note={note} click="click a part to see it in the flame graph">
      <div class="step-bars">
        {start.bars.map((bar) => (
          <>
            <div class="bar-name">
              <Named text={bar.name} />
            </div>
            <Row opened={opened} bar={bar} />
          </>
        ))}
      </div>
      {start.ranks.length ? <RankRows opened={opened} ranks={start.ranks} /> : null}
    </Card>
  );
}

function Row({ opened, bar }: { opened: Opened; bar: StepBar }) {
  const small = bar.parts.filter((part) => part.share >= SEEN && (!fits(part) || isTight(part)));
  return (
    <div>
      <div class="step-bar" data-bar={bar.name}>
        {bar.parts.map((part) => (
          <Part opened={opened} part={part} phases={bar.name === "phase"} />
        ))}
      </div>
      {small.length ? (
        <div class="quiet small rest">
          {small.map((part) => (
            <span class={fits(part) ? "tight" : ""}>
              <span class={`dot ${colourOf(part)}`} />
              {wordsOf(part)}
            </span>
          ))}
        </div>
      ) : null}
    </div>
  );
}

/** Whether the words have room in the bar; else they stand below it, whole. */
function fits(part: StepPart): boolean {
  return part.share >= LETTER * (wordsOf(part).length + EDGES);
}

/** Whether the words have room in a usual window and none in one of half its width, or on paper. */
function isTight(part: StepPart): boolean {
  return fits(part) && part.share < NARROW * LETTER * (wordsOf(part).length + EDGES);
}

const wordsOf = (part: StepPart) => `${visible(part.label)} ${percent(part.share)}`;

function colourOf(part: StepPart): string {
  const pattern = part.group === "wait" || part.group === "idle" ? "hatched" : part.key === "backward" ? "striped" : "";
  const colour = part.group === "unexplained" || part.group === "idle" ? "idle" : (COLOURS[part.key] ?? "native");
  return `${colour} ${pattern}`;
}

function Part({ opened, part, phases }: { opened: Opened; part: StepPart; phases: boolean }) {
  const words = wordsOf(part);
  const known = part.known === "measured" ? "" : ` (${part.known})`;
  const title = [`${words}: ${duration(part.ns)}${known}`, ...part.lines.map((line) => visible(line))].join("\n");
  const style = { width: cssWidth(part.share) };
  const body = fits(part) ? isTight(part) ? <span class="tight">{words}</span> : words : "";
  const look = () => (phases && part.node < 0 ? undefined : opened.go.frame(part.node));
  return part.node >= 0 ? (
    <button
      type="button"
      class={`step-part ${colourOf(part)}`}
      style={style}
      title={title}
      aria-label={words}
      onClick={look}
    >
      {body}
    </button>
  ) : (
    <span class={`step-part ${colourOf(part)}`} style={style} title={title}>
      {body}
    </span>
  );
}

const ALIGNED = 4; // ranks below each other; more stand in two columns, so that the page ends where a screen does

/** Own work, then what a rank waits for the others: the right ends are the collective at which they meet. */
function RankRows({ opened, ranks }: { opened: Opened; ranks: RankBar[] }) {
  const most = Math.max(1, ...ranks.map((one) => one.work_ns + one.wait_ns));
  return (
    <div
      class={`rank-rows ${ranks.length > ALIGNED ? "columns" : ""}`}
      role="group"
      aria-label="Ranks, aligned at the collective"
    >
      {ranks.map((one) => {
        const whole = one.work_ns + one.wait_ns;
        const said = `works ${duration(one.work_ns)}, waits ${duration(one.wait_ns)} for the others`;
        return (
          <div class={`rank-row ${ranks.some((other) => other.late) ? "marked" : ""}`}>
            <span class={`bar-name ${one.late ? "late" : ""}`}>
              rank {one.rank}
              {one.late ? " · comes last" : ""}
            </span>
            <div
              class="rank-bar"
              onClick={() => open(opened, one)}
              title={`rank ${one.rank} ${visible(one.host)} ${said}`}
            >
              <span style={{ width: cssWidth(1 - whole / most) }} />
              <span class={one.late ? "kernel" : "module"} style={{ width: cssWidth(one.work_ns / most) }} />
              <span class="collective hatched" style={{ width: cssWidth(one.wait_ns / most) }} />
              <span class="offscreen">{said}</span>
            </div>
          </div>
        );
      })}
      <div class="quiet small rest">
        <span>
          <span class="dot module" />
          its own work
        </span>
        <span>
          <span class="dot collective hatched" />
          waits for other ranks
        </span>
      </div>
    </div>
  );
}

function open(opened: Opened, one: RankBar): void {
  if (one.node >= 0) opened.go.frame(one.node);
}
