// The timeline page: the chart, and beside it what is selected: an event with its links, or a range with its statistics.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { EventKindNames } from "../../model/schema.generated";
import { timelineOf, type Timeline } from "../../model/timeline";
import { chromeTrace, linksOf, rangeFacts, type Link } from "../../model/timeline_facts";
import { duration, number, share, size, visible } from "../../model/units";
import type { Opened } from "../opened";
import { DrawingLayers, type Layers } from "../canvas";
import { SourceLine } from "../source_line";
import { Dot, Nothing, Toggle } from "../widgets";
import { TimelineChart, type Range } from "./chart";

export function TimelinePage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  if (!seen.current) return null; // nothing is computed before somebody looks
  if (!opened.profile.tables.events.start_ns.length)
    return (
      <>
        <h2>Timeline</h2>
        <Nothing>
          This profile holds no trace window, so it says where time went but not when. Record one with{" "}
          <code>leadline run --trace steps=3 …</code>
        </Nothing>
      </>
    );
  return <Shown opened={opened} shown={shown} />;
}

function Shown({ opened, shown }: { opened: Opened; shown: boolean }) {
  const { profile } = opened;
  const [hideLibrary, setHide] = useState(true);
  const timeline = useMemo(() => timelineOf(profile, hideLibrary) as Timeline, [profile, hideLibrary]);
  const [span, select] = useState(-1);
  const [range, setRange] = useState<Range | null>(null);
  const [tip, setTip] = useState<{ span: number; x: number; y: number } | null>(null);
  const layers = useRef<Partial<Layers>>({});
  const chart = useRef<TimelineChart | null>(null);
  const event = span >= 0 ? timeline.event[span] : -1;
  const links = useMemo(() => (event >= 0 ? linksOf(profile, event) : []), [event]);

  useEffect(() => {
    const made = new TimelineChart(layers.current as Layers, profile, timeline, {
      select,
      range: setRange,
      hover: (one, x, y) => setTip(one >= 0 ? { span: one, x, y } : null),
    });
    chart.current = made;
    select(-1);
    return () => made.close();
  }, [timeline]);
  useEffect(() => chart.current?.mark(span, links), [span, links]);
  useEffect(() => {
    if (shown) chart.current?.draw();
  }, [shown]);

  const save = () => {
    const address = URL.createObjectURL(new Blob([chromeTrace(profile, timeline)], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = "leadline-trace.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <>
      <div class="toolbar">
        <h2>Timeline</h2>
        <span class="quiet">
          {number(profile.tables.events.start_ns.length)} events in {duration(timeline.length_ns)}
        </span>
        <Toggle
          label="Hide libraries"
          title="Leave library frames out of the call stacks"
          on={hideLibrary}
          flip={() => setHide(!hideLibrary)}
        />
        <span class="grow" />
        <span class="quiet small">drag selects, Ctrl and wheel zooms, Shift drags</span>
        <button type="button" class="plain" onClick={() => chart.current?.zoom(0.5)} aria-label="Zoom in">
          +
        </button>
        <button type="button" class="plain" onClick={() => chart.current?.zoom(2)} aria-label="Zoom out">
          −
        </button>
        <button
          type="button"
          class="plain"
          onClick={save}
          title="A file that ui.perfetto.dev and chrome://tracing open"
        >
          Save for Perfetto
        </button>
      </div>
      <div class="flame-main">
        <div class="flame-left">
          <DrawingLayers
            layers={layers.current}
            name="timeline"
            label="Timeline; arrow keys select events, Page Up and Page Down go to other lanes, w and s zoom, a and d pan; the panel beside it says what is selected"
          />
          {tip ? <Tip opened={opened} timeline={timeline} tip={tip} /> : null}
        </div>
        <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected part of the timeline">
          {range ? (
            <RangePanel opened={opened} timeline={timeline} range={range} />
          ) : span >= 0 ? (
            <SpanPanel opened={opened} timeline={timeline} span={span} links={links} select={select} />
          ) : (
            <LanePanel timeline={timeline} opened={opened} />
          )}
        </aside>
      </div>
    </>
  );
}

function Tip({
  timeline,
  tip,
  opened,
}: {
  opened: Opened;
  timeline: Timeline;
  tip: { span: number; x: number; y: number };
}) {
  const right = tip.x > innerWidth / 2;
  const style = {
    left: right ? undefined : `${tip.x + 14}px`,
    right: right ? `${innerWidth - tip.x + 14}px` : undefined,
    top: `${tip.y + 18}px`,
  };
  return (
    <div class="tip" style={style} aria-hidden="true">
      <b>{visible(opened.profile.name(timeline.node[tip.span]))}</b>
      <div>{duration(timeline.end[tip.span] - timeline.start[tip.span])}</div>
    </div>
  );
}

/** Before anything is selected: how busy each lane was. */
function LanePanel({ timeline, opened }: { timeline: Timeline; opened: Opened }) {
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

function RangePanel({ opened, timeline, range }: { opened: Opened; timeline: Timeline; range: Range }) {
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
      <table class="costs">
        <tbody>
          {facts.lanes.slice(0, 40).map((lane) => (
            <tr>
              <th scope="row">{visible(lane.title)}</th>
              <td>{duration(lane.busy_ns)}</td>
              <td>{share(lane.busy_ns, length)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h4>Events, with what is nested in them</h4>
      <table class="costs range-names">
        <tbody>
          {facts.names.slice(0, 60).map((one) => (
            <tr>
              <th scope="row" title={one.kind}>
                <Dot kind={one.kind} />
                {visible(one.name)}
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
  wait: ["Waits for", "Awaited by"],
};

function SpanPanel({ opened, timeline, span, links, select }: SpanProps) {
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
                  <span class="grow">{visible(profile.name(events.node[other]))}</span>
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
