// The timeline page: the chart, and beside it what is selected: an event with its links, or a range with its statistics.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { withPrediction, type Chosen } from "../../model/predicted";
import { busyShare, ofProcess, spanText, timelineOf, type Timeline } from "../../model/timeline";
import { chromeTrace, linksOf } from "../../model/timeline_facts";
import { EventKindNames } from "../../model/schema.generated";
import { duration, number, visible } from "../../model/units";
import type { Opened } from "../opened";
import { DrawingLayers, type Layers } from "../canvas";
import { Dot, NoWindow, ProcessChoice, Toggle } from "../widgets";
import { TimelineChart, type Range } from "./chart";
import { LanePanel, RangePanel, SpanPanel } from "./panels";
import { PredictionChoice } from "./prediction";
import { shownKind } from "./scale";

const IDLE = 0.01; // of the window: a thread that was at work for less is folded
const LOOKED_AT = 2000;
const LEGEND: [string, string][] = [
  ["thread", "step"],
  ["python", "Python"],
  ["module", "module"],
  ["operator", "operator"],
  ["phase", "phase"],
  ["region", "region"],
  ["api", "call of the driver, wait"],
  ["kernel", "kernel"],
  ["copy", "copy"],
  ["collective", "collective"],
  ["running", "on a CPU"],
  ["runnable", "waits for a CPU"],
  ["blocked", "blocked"],
];

export function TimelinePage({ opened, shown }: { opened: Opened; shown: boolean }) {
  const seen = useRef(false);
  if (shown) seen.current = true;
  if (!seen.current) return null; // nothing is computed before somebody looks
  if (!opened.profile.tables.events.start_ns.length)
    return (
      <>
        <h2>Timeline</h2>
        <NoWindow profile={opened.profile} so="so it says where time went but not when" />
      </>
    );
  return <Shown opened={opened} shown={shown} />;
}

function Shown({ opened, shown }: { opened: Opened; shown: boolean }) {
  const { profile } = opened;
  const [hideLibrary, setHide] = useState(true);
  const [chosen, setChosen] = useState<Chosen[]>([]);
  const measured = useMemo(() => timelineOf(profile, hideLibrary) as Timeline, [profile, hideLibrary]);
  const [process, setProcess] = useState(-1);
  const whole = useMemo(() => ofProcess(chosen.reduce(withPrediction, measured), process), [measured, chosen, process]);
  const [showIdle, setIdle] = useState(false);
  const busy = useMemo(
    () => whole.lanes.filter((lane) => lane.kind !== "thread" || busyShare(whole, lane) >= IDLE),
    [whole],
  );
  const folded = busy.length ? whole.lanes.length - busy.length : 0;
  const timeline = useMemo(
    () => (folded && !showIdle ? { ...whole, lanes: busy } : whole),
    [whole, busy, showIdle, folded],
  );
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
        {folded ? (
          <Toggle
            label={`${folded} idle lane${folded > 1 ? "s" : ""}`}
            title="Show threads that were at work for less than 1 % of the window"
            on={showIdle}
            flip={() => setIdle(!showIdle)}
          />
        ) : null}
        <ProcessChoice profile={profile} value={process} choose={setProcess} />
        <PredictionChoice opened={opened} chosen={chosen} choose={setChosen} />
        <span class="grow" />
        <span class="quiet small">drag selects, Ctrl and wheel zooms, Shift drags, f fits, m marks</span>
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
      <Legend timeline={timeline} opened={opened} />
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

/** What the colours mean, of what is drawn. */
function Legend({ opened, timeline }: { opened: Opened; timeline: Timeline }) {
  const { profile } = opened;
  const kinds = useMemo(() => {
    const found = new Set<string>();
    for (const lane of timeline.lanes)
      for (const row of lane.rows)
        for (let i = 0; i < Math.min(row.length, LOOKED_AT); i++) {
          const span = row[i];
          const event = timeline.event[span];
          const kind = event >= 0 ? EventKindNames[profile.tables.events.kind[event]] : undefined;
          found.add(shownKind(kind, spanText(profile, timeline, span).kind));
        }
    return LEGEND.filter(([kind]) => found.has(kind));
  }, [timeline]);
  return (
    <div class="legend">
      {kinds.map(([kind, words]) => (
        <span>
          <Dot kind={kind} />
          {words}
        </span>
      ))}
      <span title="A frame that no event of its own measured; it is filled where events below it ran">
        <span class="dot hollow" />
        hollow: inferred from what ran in it
      </span>
    </div>
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
      <b>{visible(spanText(opened.profile, timeline, tip.span).name)}</b>
      <div>{duration(timeline.end[tip.span] - timeline.start[tip.span])}</div>
    </div>
  );
}
