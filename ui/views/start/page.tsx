// The start page: how long a step is and why, one step as bars, what would help, where, and how far to trust it. Python has
// computed all of it (`report.verdict`, `report.start`); what the file keeps of it is shown where there is no Python.

import { useRef, useState } from "preact/hooks";
import type { Start, Verdict } from "../../model/report";
import { duration, visible } from "../../model/units";
import { NO_SUMMARY, type Opened } from "../opened";
import { DeviceCards } from "../overview/devices";
import { FindingsCard } from "../overview/findings";
import { HotPaths } from "../overview/paths";
import { RanksCard } from "../overview/ranks";
import { ServingCard } from "../overview/serving";
import { CopyButton, Nothing, Prose } from "../widgets";
import { HelpCard } from "./help";
import { StepBars } from "./bars";
import { Where } from "./where";
import { Known } from "./known";
import { MemoryStart } from "./memory";

export function StartPage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  return seen.current ? <Shown opened={opened} /> : null; // nothing is ranked before somebody looks
}

function Shown({ opened }: { opened: Opened }) {
  const { report } = opened;
  if (opened.waiting) return <Waiting />;
  if (report.known === false)
    return (
      <>
        <Nothing>{NO_SUMMARY}</Nothing>
        <FindingsCard opened={opened} />
      </>
    );
  const { verdict, start } = report;
  const onlyMemory = Boolean(verdict && !verdict.account && report.memory?.peaks.length);
  return (
    <>
      {onlyMemory ? <MemoryStart opened={opened} /> : null}
      {verdict && !onlyMemory ? <VerdictCard opened={opened} verdict={verdict} start={start ?? null} /> : null}
      {report.serving ? <ServingCard serving={report.serving} /> : null}
      {start ? (
        <>
          <StepBars opened={opened} start={start} />
          <HelpCard opened={opened} start={start} />
          <Where opened={opened} start={start} />
        </>
      ) : null}
      {verdict ? <Trust opened={opened} verdict={verdict} start={start ?? null} /> : null}
      <FindingsCard opened={opened} />
      <RanksCard opened={opened} ranks={report.ranks} />
      <HotPaths opened={opened} />
      {report.gpu && (report.gpu.devices.length || report.gpu.kernels.length) ? <DeviceCards report={report} /> : null}
    </>
  );
}

/** No figure is shown that others replace a moment later. */
function Waiting() {
  return (
    <section class="card verdict" role="status" aria-busy="true">
      <div class="step-figure">
        <div class="huge quiet">…</div>
        <div class="quiet">a step</div>
      </div>
      <div class="grow">
        <h2>Reading the profile</h2>
        <p class="quiet">Steps, waits and findings are computed; every other page can be used meanwhile.</p>
      </div>
    </section>
  );
}

interface Props {
  opened: Opened;
  verdict: Verdict;
  start: Start | null;
}

function VerdictCard({ opened, verdict, start }: Props) {
  const [known, setKnown] = useState(false);
  const { go, profile } = opened;
  const node = start?.node ?? -1;
  const window = profile.tables.events.node.length > 0;
  const { place } = verdict;
  return (
    <section class={`card verdict ${verdict.kind === "cannot_tell" ? "unsure" : ""}`} aria-label="Verdict">
      <StepFigure start={start} of={opened.report.serving ? "a step of the model, mean" : "a step, mean"} />
      <div class="grow">
        <h2 class="sentence">
          <Prose text={sentenceOf(verdict.sentence)} />
        </h2>
        {verdict.because.length ? (
          <ul class="because">
            {verdict.because.map((fact) => (
              <li>
                <Prose text={fact} />
              </li>
            ))}
          </ul>
        ) : null}
        {verdict.ask ? (
          <p class="quiet">
            To know more: <code>{visible(verdict.ask)}</code> <CopyButton text={verdict.ask} label="command" />
          </p>
        ) : null}
        <div class="actions">
          {place?.line ? (
            <button type="button" class="action" onClick={() => openLine(opened, place.file, place.line)}>
              Open {visible(`${place.short}:${place.line}`)}
            </button>
          ) : null}
          {node >= 0 ? (
            <button type="button" class="action" onClick={() => go.frame(node)}>
              See it in the flame graph
            </button>
          ) : null}
          {window ? (
            <button type="button" class="action" onClick={() => go.page("timeline")}>
              See it in the timeline
            </button>
          ) : null}
          <button type="button" class="action" aria-expanded={known} onClick={() => setKnown(!known)}>
            How this is known
          </button>
          {start ? (
            <CopyButton text={`${start.title}\n${start.text}`} label="the verdict as text" shown="Copy as text" />
          ) : null}
        </div>
        {known ? <Known verdict={verdict} /> : null}
      </div>
    </section>
  );
}

/** The verdict's first letter as a sentence begins; three spaces set its line apart, which the button shows. */
function sentenceOf(text: string): string {
  const plain = text.replace(/ {3,}/g, "  ·  ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

export function openLine(opened: Opened, file: string, line: number): void {
  if (opened.host.openFile) opened.host.openFile(file, line);
  else opened.go.source(file, line);
}

function StepFigure({ start, of }: { start: Start | null; of: string }) {
  if (!start) return null;
  const step = start.of === "step";
  const most = Math.max(1, ...start.walls_ns);
  return (
    <div class="step-figure">
      <div class="huge">{duration(start.wall_ns)}</div>
      <div class="quiet">{step ? of : "the run; nothing repeats"}</div>
      {start.walls_ns.length > 1 ? (
        <div
          class="walls"
          role="img"
          aria-label={`${start.walls_ns.length} steps from ${duration(start.min_ns)} to ${duration(start.max_ns)}`}
        >
          {start.walls_ns.map((wall, i) => (
            <span
              title={`step ${i + 1}: ${duration(wall)}`}
              style={{ height: `${Math.max(4, (100 * wall) / most)}%` }}
            />
          ))}
        </div>
      ) : null}
      {step && start.max_ns > 0 ? (
        <div class="quiet small">
          {duration(start.min_ns)} to {duration(start.max_ns)}
        </div>
      ) : null}
    </div>
  );
}

function Trust({ opened, verdict, start }: Props) {
  const silent = start?.rules_silent ?? 0;
  const nothing = verdict.trust.startsWith("nothing lost");
  const end = verdict.trust.indexOf(", ");
  const [first, rest] = end < 0 ? [verdict.trust, ""] : [verdict.trust.slice(0, end), verdict.trust.slice(end + 2)];
  return (
    <p class="trust">
      <b class={nothing ? "good" : "warned"}>{visible(first.charAt(0).toUpperCase() + first.slice(1))}</b>
      {rest ? ` · ${visible(rest)}` : ""}
      {silent ? ` · ${silent} rules do not apply here` : ""}
      <button type="button" class="plain link" onClick={() => opened.go.page("capture")}>
        Details
      </button>
    </p>
  );
}
