// What changes would do to a step, or did: the answer and both steps as bars, what to do, then every change; what gains
// nothing is folded. `leadline whatif`, `leadline try` and the tab What if show it.

import { useState } from "preact/hooks";
import type { ChangeBar, ChangeRow, Changes } from "../../model/changes";
import { duration, percent, visible } from "../../model/units";
import { Card, CopyButton, cssWidth, Prose } from "../widgets";
import { Busy } from "./lanes";

export function ChangesView({ changes }: { changes: Changes }) {
  const { groups } = changes;
  const now = changes.bars[0]?.ns ?? 0;
  const all = [...changes.bars, ...groups.flatMap(({ rows }) => rows.map(({ bar }) => bar))];
  const most = Math.max(1, ...all.map((bar) => Math.max(bar.ns, bar.high_ns)).filter((ns) => ns <= 4 * now));
  return (
    <>
      <Answer changes={changes} />
      {changes.advice.length ? <AdviceCard advice={changes.advice} /> : null}
      {groups.map(({ title, rows, folded }) =>
        folded ? (
          <details class="card folded">
            <summary>{visible(title)}</summary>
            <Rows heads={changes.heads} rows={rows} now={now} most={most} />
          </details>
        ) : (
          <Card title={title} note="a step as a bar from zero; the thin line is its range, the mark the measured step">
            <Rows heads={changes.heads} rows={rows} now={now} most={most} />
          </Card>
        ),
      )}
      {changes.parts.length ? <Parts parts={changes.parts} note={changes.parts_note} /> : null}
      {changes.lanes ? <Busy lanes={changes.lanes} /> : null}
      {changes.notes.length ? (
        <Card title="To know">
          <Facts facts={changes.notes} />
        </Card>
      ) : null}
      {changes.left.length ? (
        <details class="card folded">
          <summary>{changes.left.length} not tried, and why</summary>
          <Facts facts={changes.left} />
        </details>
      ) : null}
    </>
  );
}

function Facts({ facts }: { facts: string[] }) {
  return (
    <ul class="evidence">
      {facts.map((fact) => (
        <li>{visible(fact)}</li>
      ))}
    </ul>
  );
}

function sideOf(bar: ChangeBar): string {
  return bar.before ? "was" : bar.gains ? "better" : "is";
}

function Answer({ changes }: { changes: Changes }) {
  const { bars } = changes;
  const most = Math.max(1, ...bars.map((bar) => Math.max(bar.ns, bar.high_ns)));
  const text = [changes.sentence, ...changes.because].join("\n");
  return (
    <section class="card verdict headline" aria-label="Answer">
      {bars.length ? (
        <div class="step-figure">
          <div class="huge">{duration(bars[0].ns)}</div>
          <div class="quiet">{visible(changes.caption)}</div>
        </div>
      ) : null}
      <div class="grow">
        <h2 class="sentence">
          <Prose text={changes.sentence} />
        </h2>
        {bars.length > 1 ? (
          <div class="step-bars">
            {bars.map((bar) => (
              <>
                <div class="bar-name" title={visible(bar.name)}>
                  {visible(bar.name)}
                </div>
                <div class="step-bar">
                  <span class={`step-part ${sideOf(bar)}`} style={{ width: cssWidth(bar.ns / most) }}>
                    {duration(bar.ns)}
                    {bar.high_ns > bar.low_ns ? ` (${duration(bar.low_ns)} to ${duration(bar.high_ns)})` : ""}
                  </span>
                </div>
              </>
            ))}
          </div>
        ) : null}
        <ul class="because">
          {changes.because.map((fact) => (
            <li>{visible(fact)}</li>
          ))}
        </ul>
        <div class="actions">
          <CopyButton text={text} label="the answer as text" shown="Copy as text" />
        </div>
      </div>
    </section>
  );
}

function AdviceCard({ advice }: { advice: Changes["advice"] }) {
  return (
    <Card title="What would help" note="the surest and largest gain first">
      <ol class="helps">
        {advice.map((one) => (
          <OneAdvice one={one} />
        ))}
      </ol>
    </Card>
  );
}

function OneAdvice({ one }: { one: Changes["advice"][number] }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <div class="help-row">
        <button type="button" class="do" aria-expanded={open} onClick={() => setOpen(!open)}>
          {visible(one.do)}
        </button>
        <span />
        <span class="gain">{visible(one.gain)}</span>
        <span class="chip">{visible(one.sure)}</span>
      </div>
      {open ? (
        <div class="help-more">
          <Facts facts={one.more} />
          {one.command ? (
            <div class="commands">
              <div>
                <code>{visible(one.command)}</code>
                <CopyButton text={one.command} label="command" />
              </div>
            </div>
          ) : null}
        </div>
      ) : null}
    </li>
  );
}

function Rows({ heads, rows, now, most }: { heads: string[]; rows: ChangeRow[]; now: number; most: number }) {
  return (
    <div class="table-wrap">
      <table class="data changes">
        <thead>
          <tr>
            <th scope="col" class="text">
              change
            </th>
            <th scope="col">a step</th>
            <th scope="col" class="text">
              <span class="offscreen">as a bar</span>
            </th>
            {heads.map((head) => (
              <th scope="col">{visible(head)}</th>
            ))}
            <th scope="col" class="text">
              verdict
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr title={row.more.map((one) => visible(one)).join("\n")}>
              <th scope="row" class="text">
                {visible(row.bar.name)}
              </th>
              <td>{row.bar.ns ? duration(row.bar.ns) : "-"}</td>
              <td class="text">
                <RangeBar bar={row.bar} now={now} most={most} />
              </td>
              {heads.map((_, at) => (
                <td>{visible(row.cells[at] ?? "")}</td>
              ))}
              <td class="text">{visible(row.verdict)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RangeBar({ bar, now, most }: { bar: ChangeBar; now: number; most: number }) {
  const beyond = bar.ns > most;
  return (
    <span class="range-bar">
      <span class={`fill ${sideOf(bar)} ${beyond ? "hatched" : ""}`} style={{ width: cssWidth(bar.ns / most) }} />
      {bar.high_ns > bar.low_ns ? (
        <span
          class="range"
          style={{
            left: cssWidth(bar.low_ns / most),
            width: cssWidth((Math.min(bar.high_ns, most) - bar.low_ns) / most),
          }}
        />
      ) : null}
      <span class="mark" style={{ left: cssWidth(now / most) }} />
    </span>
  );
}

const SORTS: Record<string, string> = { work: "operator", wait: "collective hatched", residual: "idle" };

function Parts({ parts, note }: { parts: Changes["parts"]; note: string }) {
  const whole = parts.reduce((sum, part) => sum + part.ns, 0) || 1;
  return (
    <Card title="Where the step goes" note={note}>
      <div class="step-bar">
        {parts.map((part) => (
          <span
            class={`step-part ${SORTS[part.sort] ?? "native"}`}
            style={{ width: cssWidth(part.ns / whole) }}
            title={visible(`${part.name}: ${duration(part.ns)}, ${percent(part.ns / whole)}`)}
          >
            {part.ns >= 0.1 * whole ? visible(part.name) : ""}
          </span>
        ))}
      </div>
      <table class="data beside">
        <tbody>
          {parts.map((part) => (
            <tr>
              <th scope="row" class="text">
                <span class={`dot ${SORTS[part.sort] ?? "native"}`} /> {visible(part.name)}
                {part.note ? <span class="quiet"> {visible(part.note)}</span> : null}
              </th>
              <td>{duration(part.ns)}</td>
              <td>{percent(part.ns / whole)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
