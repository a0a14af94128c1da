// What `leadline analyze` found: the most important first, each with its line, remedy and gain. A click leads to the path.

import { useState } from "preact/hooks";
import type { Finding } from "../../model/report";
import { duration, number, share, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Card, Prose } from "../widgets";

const FIRST = 4;

export function FindingsCard({ opened }: { opened: Opened }) {
  const { findings } = opened;
  const [all, showAll] = useState(false);
  if (opened.waiting)
    return (
      <Card title="Findings" note="">
        <p class="quiet" role="status" aria-busy="true">
          Looking for them …
        </p>
      </Card>
    );
  if (!findings)
    return opened.host.commands ? null : (
      <Card title="Findings" note="none are saved in this file">
        <p class="quiet">
          <code>leadline analyze --save</code> looks for problems and keeps them in the file; in an editor the command
          “Leadline: Find Problems” does.
        </p>
      </Card>
    );
  const list = findings.findings;
  const warnings = list.filter((one) => one.severity === "warning").length;
  const steps = findings.steps
    ? `; ${number(findings.steps)} step${findings.steps === 1 ? "" : "s"} of ${duration(findings.step_ns)}`
    : "";
  const counted = `${number(list.length - warnings)} note${list.length - warnings === 1 ? "" : "s"}`;
  const note = warnings
    ? `${number(warnings)} warning${warnings === 1 ? "" : "s"}, ${counted}${steps}`
    : `${findings.state_text}${list.length ? `, ${counted}` : ""}${steps}`;
  return (
    <Card title="Findings" note={note}>
      {list.length ? (
        <ol class="findings">
          {list.slice(0, all ? list.length : FIRST).map((one) => (
            <Entry opened={opened} finding={one} />
          ))}
        </ol>
      ) : (
        <p class="quiet">
          No rule found a problem; {number(findings.not_applicable.length)} could not be asked of this profile.
        </p>
      )}
      {list.length > FIRST && !all ? (
        <button type="button" class="plain" onClick={() => showAll(true)}>
          Show {number(list.length - FIRST)} more
        </button>
      ) : null}
      {findings.notes.map((note) => (
        <p class="quiet small">{visible(note)}</p>
      ))}
    </Card>
  );
}

function Entry({ opened, finding }: { opened: Opened; finding: Finding }) {
  const { go, host } = opened;
  const line = finding.lines[0];
  const [open, setOpen] = useState(false);
  return (
    <li class={`finding ${finding.severity}`}>
      <div class="finding-head">
        <span class={`chip ${finding.severity === "warning" ? "warn" : ""}`}>
          {finding.severity === "warning" ? "warning" : "note"}
        </span>
        <b class="grow">
          <Prose text={finding.title} />
        </b>
        <span class="quiet">{gain(finding)}</span>
      </div>
      <p>
        <Prose text={finding.remedy} />
      </p>
      <div class="finding-links">
        {line ? (
          <button
            type="button"
            class="plain"
            onClick={() => (host.openFile ? host.openFile(line.file, line.line) : go.source(line.file, line.line))}
          >
            {visible(`${opened.shortFile(line.file)}${line.line ? `:${line.line}` : ""}`)}
          </button>
        ) : null}
        {finding.paths.length ? (
          <button type="button" class="plain" onClick={() => go.frame(finding.paths[0])}>
            Show in the flame graph
          </button>
        ) : null}
        {finding.paths.length && opened.profile.tables.events.start_ns.length ? (
          <button
            type="button"
            class="plain"
            onClick={() => go.to(`#timeline?finding=${opened.findings?.findings.indexOf(finding) ?? -1}`)}
          >
            Show in the timeline
          </button>
        ) : null}
        <button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
          Evidence
        </button>
        <span class="quiet small">{visible(finding.rule)}</span>
      </div>
      {open ? (
        <>
          <ul class="evidence">
            {finding.evidence.map((one) => (
              <li>
                <Prose text={one} />
              </li>
            ))}
          </ul>
          {finding.lines.map((one) =>
            one.text ? <pre>{`${visible(`${one.short}:${one.line}`)}  ${visible(one.text.trim())}`}</pre> : null,
          )}
          <p class="quiet small">Gain: {visible(finding.gain.basis)}.</p>
        </>
      ) : null}
    </li>
  );
}

function gain({ gain: { expected_ns, high_ns, of_ns, per } }: Finding): string {
  const unit = per === "step" ? "a step" : "a run";
  if (high_ns <= 0) return "";
  if (!expected_ns) return `at most ${duration(high_ns)} ${unit}`;
  return `saves about ${duration(expected_ns)} ${unit}${of_ns ? `, ${share(expected_ns, of_ns)}` : ""}`;
}
