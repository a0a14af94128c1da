// What stands beside the timeline: the whole window, a range with its statistics, or one span with its links.

import { useEffect, useMemo, useState } from "preact/hooks";
import { operatorName } from "../../model/frames";
import { scopesOf } from "../../model/scopes";
import { EventKindNames } from "../../model/schema.generated";
import { spanText, type Timeline } from "../../model/timeline";
import { bare } from "../../model/names";
import { rangeFacts, type Link, type StateFacts } from "../../model/timeline_facts";
import { duration, number, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { SourceLine } from "../source_line";
import { Dot, Named } from "../widgets";
import type { Range } from "./chart";

/** Before anything is selected: how busy each lane was. */
export function LanePanel({ timeline, opened }: { timeline: Timeline; opened: Opened }) {
  const [facts, setFacts] = useState<ReturnType<typeof rangeFacts> | null>(null);
  useEffect(() => {
    // after the first drawing: of a million events it takes a while
    const later = setTimeout(() => setFacts(rangeFacts(opened.profile, timeline, 0, timeline.length_ns)));
    return () => clearTimeout(later);
  }, [timeline]);
  return (
    <>
      <h3>The whole window</h3>
      <p class="quiet small">Click an event for its links; drag over a range for its statistics.</p>
      {facts ? <Facts facts={facts} length={timeline.length_ns} /> : <p aria-busy="true">Adding up …</p>}
    </>
  );
}

export function RangePanel({ opened, timeline, range }: { opened: Opened; timeline: Timeline; range: Range }) {
  const facts = useMemo(() => rangeFacts(opened.profile, timeline, range.from, range.to), [timeline, range]);
  return (
    <>
      <h3>{duration(range.to - range.from)} selected</h3>
      <p class="quiet small">
        from {duration(range.from)} to {duration(range.to)}; Enter zooms to it, Esc lets go
      </p>
      <Facts facts={facts} length={range.to - range.from} />
    </>
  );
}

function Facts({ facts, length }: { facts: ReturnType<typeof rangeFacts>; length: number }) {
  return (
    <>
      <h4>Busy</h4>
      <table class="costs one-line">
        <tbody>
          {facts.lanes.slice(0, 40).map((lane) => (
            <tr>
              <th scope="row">
                <Named text={lane.title} />
              </th>
              <td>{duration(lane.busy_ns)}</td>
              <td>{share(lane.busy_ns, length)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {facts.states.length ? (
        <>
          <h4>By the kernel</h4>
          {facts.states.slice(0, 20).map((one) => (
            <States of={one} length={length} />
          ))}
        </>
      ) : null}
      <h4>Events, with what is nested in them</h4>
      <table class="costs one-line range-names">
        <tbody>
          {facts.names.slice(0, 60).map((one) => (
            <tr>
              <th scope="row">
                <Dot kind={one.kind} />
                <Named text={bare(one.name)} title={`${one.name} (${one.kind})`} />
              </th>
              <td>{number(one.count)} ×</td>
              <td>{duration(one.sum_ns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function States({ of, length }: { of: StateFacts; length: number }) {
  const kinds = ["running", "runnable", "blocked"] as const;
  return (
    <table class="costs one-line">
      <caption class="quiet small">{visible(of.title)}</caption>
      <tbody>
        {kinds.map((kind) => (
          <tr>
            <th scope="row">
              <Dot kind={kind} />
              {kind}
            </th>
            <td>{duration(of[`${kind}_ns`])}</td>
            <td>{share(of[`${kind}_ns`], length)}</td>
          </tr>
        ))}
        {of.waits.map((one) => (
          <tr class="detail">
            <th scope="row">
              <Named text={bare(one.name)} title={one.name} />
            </th>
            <td>{duration(one.sum_ns)}</td>
            <td>{share(one.sum_ns, length)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface SpanProps {
  opened: Opened;
  timeline: Timeline;
  span: number;
  links: Link[];
  select(span: number): void;
}

const LINK_WORDS = {
  launch: ["Its work on the device", "Launched by"],
  backward: ["Its backward", "Its forward"],
  gradient: ["Its gradient goes to", "Its gradient comes from"],
  wait: ["Waits for", "Awaited by"],
};

export function SpanPanel(props: SpanProps) {
  return props.timeline.node[props.span] < 0 ? <TextPanel {...props} /> : <NodePanel {...props} />;
}

/** A span that is no call path: a thread's state, or work that was predicted. */
function TextPanel({ opened, timeline, span }: SpanProps) {
  const { name, kind } = spanText(opened.profile, timeline, span);
  return (
    <>
      <div class="details-head">
        <span class="chip">{["running", "runnable", "blocked"].includes(kind) ? "thread state" : "predicted"}</span>
      </div>
      <h3>{visible(name)}</h3>
      <Table
        facts={[
          ["duration", duration(timeline.end[span] - timeline.start[span])],
          ["starts at", duration(timeline.start[span])],
        ]}
      />
    </>
  );
}

function Table({ facts }: { facts: [string, string][] }) {
  return (
    <table class="costs">
      <tbody>
        {facts.map(([name, value]) => (
          <tr>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NodePanel({ opened, timeline, span, links, select }: SpanProps) {
  const { profile, go } = opened;
  const event = timeline.event[span];
  const node = timeline.node[span];
  const frame = profile.frame[node];
  const { events } = profile.tables;
  const kind =
    event >= 0 ? (EventKindNames[events.kind[event]] ?? "event") : `${profile.kind(node)}, from its call path`;
  const user = [...profile.path(node)]
    .reverse()
    .find((row) => profile.kind(row) === "python" && !profile.library(profile.frame[row]));
  const facts: [string, string][] = [
    ["duration", duration(timeline.end[span] - timeline.start[span])],
    ["starts at", duration(timeline.start[span])],
  ];
  if (event >= 0) {
    if (events.duration_ns[event] < 0) facts.push(["ended", "not before the window closed"]);
    if (events.bytes[event]) facts.push(["bytes", size(events.bytes[event])]);
    if (events.step[event] >= 0) facts.push(["step", number(events.step[event])]);
    if (events.stream[event] >= 0) facts.push(["stream", String(events.stream[event])]);
  }
  return (
    <>
      <div class="details-head">
        <span class="chip">{kind}</span>
      </div>
      <h3>{visible(profile.name(node))}</h3>
      {user !== undefined ? (
        <SourceLine
          opened={opened}
          file={profile.frameText("file", profile.frame[user])}
          line={profile.line(profile.frame[user])}
        />
      ) : profile.frameText("file", frame) ? (
        <SourceLine opened={opened} file={profile.frameText("file", frame)} line={profile.line(frame)} />
      ) : null}
      <Table facts={facts} />
      <button type="button" class="plain" onClick={() => go.frame(node)}>
        Show in the flame graph
      </button>
      {links.length ? (
        <>
          <h4>Joined with</h4>
          <div class="frame-list">
            {links.slice(0, 20).map((link) => {
              const other = link.to === event ? link.from : link.to;
              return (
                <button
                  type="button"
                  class="frame-link"
                  onClick={() => timeline.spanOf[other] >= 0 && select(timeline.spanOf[other])}
                >
                  <span class="quiet">{LINK_WORDS[link.what][link.to === event ? 1 : 0]} </span>
                  <span class="grow">{visible(operatorName(profile.name(events.node[other])))}</span>
                  <span class="number">{duration(Math.max(0, events.duration_ns[other]))}</span>
                </button>
              );
            })}
          </div>
        </>
      ) : null}
    </>
  );
}

/** The user's line and the operator of a node. */
export function pathText(opened: Opened, node: number): string {
  const { profile } = opened;
  const { user, outer, phase } = scopesOf(profile);
  const frame = profile.frame[Math.max(0, user[node])];
  const line = user[node] >= 0 ? `${opened.shortFile(profile.frameText("file", frame))}:${profile.line(frame)}` : "";
  const names = [phase[node], outer[node], node].filter((row) => row >= 0).map((row) => profile.name(row));
  return visible([line, ...new Set(names)].filter(Boolean).join(" › "));
}
