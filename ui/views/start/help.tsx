// What would help, the first before the others: what to do, where, how much, how sure, and what tries or shows it.

import { useState } from "preact/hooks";
import type { Help, Start } from "../../model/report";
import { duration, visible } from "../../model/units";
import type { Opened } from "../opened";
import { Card, CopyButton, Prose } from "../widgets";
import { openLine } from "./page";

const SURE: Record<string, string> = {
  measured: "the gain was measured in this profile",
  simulated: "the step was replayed with the change, see docs/what-if.md",
  estimated: "a range from what similar changes gained",
  "at most": "a bound: no more than this can be gained",
  uncertain: "a profile cannot estimate it well; the command below measures it",
};

export function HelpCard({ opened, start }: { opened: Opened; start: Start }) {
  if (!start.help.length)
    return (
      <Card title="What would help">
        <p class="quiet">No rule knows a change that gains 2 % of the step or more.</p>
      </Card>
    );
  return (
    <Card title="What would help" note="in order of priority; no gain exceeds what the bottleneck allows">
      <ol class="helps">
        {start.help.map((one) => (
          <Entry opened={opened} help={one} start={start} />
        ))}
      </ol>
    </Card>
  );
}

function Entry({ opened, help, start }: { opened: Opened; help: Help; start: Start }) {
  const [open, setOpen] = useState(false);
  const place = help.place;
  const prediction = help.scenario && opened.host.predicted && opened.profile.tables.events.node.length > 0;
  return (
    <li>
      <div class="help-row">
        <button type="button" class="do" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Prose text={help.do} />
        </button>
        {place ? (
          <button type="button" class="plain link mono" onClick={() => openLine(opened, place.file, place.line)}>
            {visible(`${place.short}:${place.line}`)}
          </button>
        ) : (
          <span />
        )}
        <span class="gain" title={visible(help.change)}>
          {gainText(help, start)}
        </span>
        <span class="chip" title={SURE[help.known] ?? ""}>
          {visible(help.known)}
        </span>
      </div>
      {open ? (
        <div class="help-more">
          <p>
            <Prose text={help.remedy || help.do} />
          </p>
          <ul class="evidence">
            {help.evidence.map((one) => (
              <li>
                <Prose text={one} />
              </li>
            ))}
          </ul>
          <div class="commands">
            <div>
              <code>{visible(help.command)}</code>
              <CopyButton text={help.command} label="command" />
            </div>
          </div>
          <div class="actions">
            {help.nodes.length ? (
              <button type="button" class="action" onClick={() => opened.go.frame(help.nodes[0])}>
                See it in the flame graph
              </button>
            ) : null}
            {prediction ? (
              <button type="button" class="action" onClick={() => opened.go.page("timeline")}>
                Try it in the timeline
              </button>
            ) : null}
          </div>
        </div>
      ) : null}
    </li>
  );
}

function gainText(help: Help, start: Start): string {
  const ranged = help.known !== "uncertain" && help.high_ns > help.low_ns;
  const range = ranged ? ` (${duration(help.low_ns)} to ${duration(help.high_ns)})` : "";
  if (help.known === "at most") return `−${duration(help.high_ns)}`;
  const { wall_ns } = start;
  if (help.gain_ns * 2 > wall_ns && start.of === "step") {
    const left = ranged ? ` (${duration(wall_ns - help.high_ns)} to ${duration(wall_ns - help.low_ns)})` : "";
    return `${duration(wall_ns)} → ${duration(wall_ns - help.gain_ns)}${left}`;
  }
  return `−${duration(help.gain_ns)}${range}`;
}
