// The timeline page: the chart, and beside it what is selected: an event with its links, or a range with its statistics.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { withPrediction, type Chosen } from "../../model/predicted";
import { BadPattern } from "../../model/search";
import { chartsOf } from "../../model/series";
import { busyShare, ofProcess, spanText, timelineOf, type Timeline } from "../../model/timeline";
import { linksOf } from "../../model/timeline_facts";
import { alignedAt, meetingsOf } from "../../model/meetings";
import { firstRole, ofRole, rolesOf } from "../../model/timeline_roles";
import { below, searched, type Hits } from "../../model/timeline_search";
import { EventKindNames } from "../../model/schema.generated";
import { duration, visible } from "../../model/units";
import { placeOf, went } from "../address";
import type { Opened } from "../opened";
import { DrawingLayers, type Layers } from "../canvas";
import { Dot, NoWindow } from "../widgets";
import { TimelineChart } from "./chart";
import { Counters, type CounterFact } from "./counters";
import { Minimap } from "./minimap";
import { Notes } from "./notes";
import { LanePanel, pathText, RangePanel, SpanPanel } from "./panels";
import { shownKind } from "./scale";
import { timelineFrom, timelineLink, type TimelineState } from "./state";
import { Toolbar } from "./toolbar";

const IDLE = 0.01; // of the window: a thread that was at work for less is folded
const MOST_COUNTERS = 6;
const LOOKED_AT = 2000;
const ADDRESS_MS = 250; // while somebody pans, the address waits
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
  const { profile, search } = opened;
  const [state, setState] = useState<TimelineState>(() => timelineFrom(placeOf(location.hash).parameters));
  const set = (change: Partial<TimelineState>) => setState((old) => ({ ...old, ...change }));
  const [hideLibrary, setHide] = useState(true);
  const [chosen, setChosen] = useState<Chosen[]>([]);
  const measured = useMemo(() => timelineOf(profile, hideLibrary) as Timeline, [profile, hideLibrary]);
  const roles = useMemo(() => rolesOf(profile, measured), [measured]);
  const met = useMemo(() => (roles.length ? meetingsOf(profile) : null), [measured, roles]);
  const role = state.role ?? (state.process < 0 ? firstRole(profile, measured) : "");
  const whole = useMemo(() => {
    const lanes = ofRole(profile, ofProcess(chosen.reduce(withPrediction, measured), state.process), role, met);
    return role && met && state.aligned ? alignedAt(lanes, met) : lanes;
  }, [measured, chosen, state.process, role, met, state.aligned]);
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
  const charts = useMemo(() => chartsOf(profile), [profile]);
  const [wanted, setCounters] = useState<boolean | null>(null);
  const all = useMemo(() => new Counters(charts, !measured.lanes.length), [charts, measured]);
  const showCounters = wanted ?? (all.count <= MOST_COUNTERS && !role); // lanes stay in sight
  const counters = useMemo(() => (showCounters ? all : new Counters([])), [all, showCounters]);
  const [span, select] = useState(-1);
  const [tip, setTip] = useState<Tipped | null>(null);
  const layers = useRef<Partial<Layers>>({});
  const map = useRef<HTMLCanvasElement>(null);
  const chart = useRef<TimelineChart | null>(null);
  const event = span >= 0 ? timeline.event[span] : -1;
  const links = useMemo(() => (event >= 0 ? linksOf(profile, event) : []), [event]);
  const findings = opened.findings?.findings ?? [];
  const sought = useMemo((): { hits: Hits | null; said: string } => {
    try {
      const paths = findings[state.finding]?.paths;
      const hits = paths ? below(profile, timeline, paths) : searched(profile, timeline, search, state.search);
      const events = hits ? `${hits.spans.length} found, ${duration(hits.sum_ns)}` : "";
      return { hits, said: hits && !hits.spans.length ? "nothing found" : events };
    } catch (error) {
      if (error instanceof BadPattern) return { hits: null, said: error.message };
      throw error;
    }
  }, [timeline, state.search, state.finding, opened.findings]);
  const about = useMemo(() => new Set(findings.flatMap((one) => one.paths)), [opened.findings]);

  const now = useRef(state);
  now.current = state;
  useEffect(() => {
    const made = new TimelineChart(layers.current as Layers, profile, timeline, counters, {
      select,
      range: (range) => set({ range }),
      hover: (one, x, y, counter) => setTip(one >= 0 || counter ? { span: one, x, y, counter: counter ?? null } : null),
      viewed: (view) => {
        small.draw(view, document.documentElement.dataset.theme ?? "");
        set({ view: view.to - view.from < timeline.length_ns ? view : null });
      },
      note: (at) => set({ notes: [...now.current.notes, { at, text: "" }] }),
    });
    const small = new Minimap(map.current as HTMLCanvasElement, measured, (middle) => {
      const wide = made.view.to - made.view.from;
      made.show(middle - wide / 2, middle + wide / 2);
    });
    chart.current = made;
    select(-1);
    made.place(now.current.view, now.current.range);
    const again = () => small.draw(made.view, document.documentElement.dataset.theme ?? "");
    addEventListener("themechange", again);
    addEventListener("resize", again);
    return () => {
      removeEventListener("themechange", again);
      removeEventListener("resize", again);
      small.close();
      made.close();
    };
  }, [timeline, counters]);
  useEffect(() => chart.current?.mark(span, links), [span, links, timeline, counters]);
  useEffect(
    () => chart.current?.say(sought.hits, about, state.notes),
    [sought, about, state.notes, timeline, counters],
  );
  useEffect(() => {
    if (sought.hits?.spans.length && state.finding >= 0) chart.current?.goTo(sought.hits.spans[0]);
  }, [state.finding]);
  useEffect(() => {
    if (shown) chart.current?.draw();
  }, [shown]);
  useEffect(() => {
    // Back, a link on another page, an address typed by hand
    const follow = () => {
      const place = placeOf(location.hash);
      if (place.page !== "timeline") return;
      const asked = timelineFrom(place.parameters);
      setState(asked);
      chart.current?.place(asked.view, asked.range);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    if (!shown) return;
    const later = setTimeout(() => {
      const link = timelineLink(state);
      if (placeOf(location.hash).page === "timeline" && link !== location.hash) went(link, true);
    }, ADDRESS_MS);
    return () => clearTimeout(later);
  }, [state, shown]);

  const nextHit = (step: number) => {
    const { hits } = sought;
    if (!hits?.spans.length) return;
    const at = hits.spans.indexOf(span);
    const view = chart.current?.view.from ?? 0;
    const first = hits.spans.findIndex((one) => timeline.end[one] > view);
    const next = hits.spans[at < 0 ? Math.max(0, first) : (at + step + hits.spans.length) % hits.spans.length];
    select(next);
    chart.current?.goTo(next);
  };
  return (
    <>
      <Toolbar
        opened={opened}
        timeline={timeline}
        state={state}
        set={set}
        roles={roles}
        role={role}
        meet={met !== null}
        said={sought.said}
        nextHit={nextHit}
        chart={() => chart.current}
        chosen={chosen}
        choose={setChosen}
        hideLibrary={[hideLibrary, setHide]}
        idle={[folded, showIdle, setIdle]}
        counters={[all.count, showCounters, setCounters]}
      />
      <Legend timeline={timeline} opened={opened} />
      <div class="flame-main">
        <div class="flame-left">
          <canvas class="minimap" ref={map} aria-hidden="true" />
          <DrawingLayers
            layers={layers.current}
            name="timeline"
            label="Timeline; arrow keys select events, Page Up and Page Down go to other lanes, w and s zoom, a and d pan; the panel next to it describes the selection"
          />
          {tip ? <Tip opened={opened} timeline={timeline} tip={tip} /> : null}
        </div>
        <aside class="details" tabIndex={0} aria-live="polite" aria-label="Selected part of the timeline">
          <Notes notes={state.notes} put={(notes) => set({ notes })} look={(at) => chart.current?.lookAround(at)} />
          {state.range ? (
            <RangePanel opened={opened} timeline={timeline} range={state.range} />
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
      <span title="A frame without an event; it is filled where events below it ran">
        <span class="dot hollow" />
        hollow: inferred from what ran in it
      </span>
    </div>
  );
}

interface Tipped {
  span: number;
  counter: CounterFact | null;
  x: number;
  y: number;
}

function Tip({ timeline, tip, opened }: { opened: Opened; timeline: Timeline; tip: Tipped }) {
  const right = tip.x > innerWidth / 2;
  const style = {
    left: right ? undefined : `${tip.x + 14}px`,
    right: right ? `${innerWidth - tip.x + 14}px` : undefined,
    top: `${tip.y + 18}px`,
  };
  const { span, counter } = tip;
  const [head, ...rest] = counter
    ? [...counter.text.split("\n"), counter.node >= 0 ? pathText(opened, counter.node) : ""]
    : [visible(spanText(opened.profile, timeline, span).name), duration(timeline.end[span] - timeline.start[span])];
  return (
    <div class="tip" style={style} aria-hidden="true">
      <b>{head}</b>
      {rest.filter(Boolean).map((line) => (
        <div>{line}</div>
      ))}
    </div>
  );
}
