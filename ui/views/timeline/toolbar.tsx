// The controls of the timeline.

import type { Chosen } from "../../model/predicted";
import type { Timeline } from "../../model/timeline";
import { chromeTrace } from "../../model/timeline_facts";
import { duration, number, visible } from "../../model/units";
import type { Opened } from "../opened";
import { saved, SaveMenu } from "../saving";
import { CopyButton, ProcessChoice, Toggle } from "../widgets";
import type { TimelineChart } from "./chart";
import { PredictionChoice } from "./prediction";
import { timelineLink, type TimelineState } from "./state";

interface Props {
  opened: Opened;
  timeline: Timeline;
  state: TimelineState;
  set(change: Partial<TimelineState>): void;
  roles: string[];
  /** The one that is shown; empty for all lanes. */
  role: string;
  /** Whether collectives of several ranks are known. */
  meet: boolean;
  /** What the search found. */
  said: string;
  nextHit(step: number): void;
  chart(): TimelineChart | null;
  chosen: Chosen[];
  choose(chosen: Chosen[]): void;
  hideLibrary: [on: boolean, put: (on: boolean) => void];
  idle: [count: number, on: boolean, put: (on: boolean) => void];
  counters: [count: number, on: boolean, put: (on: boolean) => void];
}

export function Toolbar(props: Props) {
  const { opened, timeline, state, set, roles, role, chart } = props;
  const { profile, findings } = opened;
  const [hideLibrary, setHide] = props.hideLibrary;
  const [folded, showIdle, setIdle] = props.idle;
  const [charts, showCounters, setCounters] = props.counters;
  return (
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
      {charts ? (
        <Toggle
          label={charts > 1 ? `${charts} counters` : "Counter"}
          title="Show memory, queues and how busy devices were on the same axis"
          on={showCounters}
          flip={() => setCounters(!showCounters)}
        />
      ) : null}
      {folded ? (
        <Toggle
          label={`${folded} idle lane${folded > 1 ? "s" : ""}`}
          title="Show threads that were at work for less than 1 % of the window"
          on={showIdle}
          flip={() => setIdle(!showIdle)}
        />
      ) : null}
      <ProcessChoice
        profile={profile}
        value={state.process}
        choose={(process) => set({ process, role: process < 0 ? null : "" })}
      />
      {roles.length ? (
        <select
          aria-label="Lane of all ranks"
          title="One thread or stream of every rank, one above the other"
          value={role}
          onChange={(event) => set({ role: event.currentTarget.value, process: -1 })}
        >
          <option value="">all lanes</option>
          {roles.map((one) => (
            <option value={one}>{visible(`${one} of all ranks`)}</option>
          ))}
        </select>
      ) : null}
      {role && props.meet ? (
        <Toggle
          label="Align"
          title="Move the clock of each rank so that collectives end together; who comes last waits least in them"
          on={state.aligned}
          flip={() => set({ aligned: !state.aligned })}
        />
      ) : null}
      {findings?.findings.some((one) => one.paths.length) ? (
        <select
          aria-label="Finding"
          title="Show what a finding is about"
          value={String(state.finding)}
          onChange={(event) => set({ finding: Number(event.currentTarget.value), search: "", role: "" })}
        >
          <option value="-1">findings</option>
          {findings.findings.map((one, i) =>
            one.paths.length ? <option value={String(i)}>{visible(one.title)}</option> : null,
          )}
        </select>
      ) : null}
      <PredictionChoice opened={opened} chosen={props.chosen} choose={props.choose} />
      <span class="grow" />
      <span class="quiet found" role="status">
        {props.said}
      </span>
      <input
        type="search"
        placeholder="Search events (/)"
        aria-label="Search events; /.../ is a regular expression"
        spellcheck={false}
        value={state.search}
        onInput={(event) => set({ search: event.currentTarget.value, finding: -1 })}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          props.nextHit(event.shiftKey ? -1 : 1);
        }}
      />
      <button
        type="button"
        class="plain"
        title="Write a note at what is selected (n); it is kept in the address"
        onClick={() => set({ notes: [...state.notes, { at: chart()?.momentOfNote() ?? 0, text: "" }] })}
      >
        Note
      </button>
      <button type="button" class="plain" onClick={() => chart()?.zoom(0.5)} aria-label="Zoom in">
        +
      </button>
      <button type="button" class="plain" onClick={() => chart()?.zoom(2)} aria-label="Zoom out">
        −
      </button>
      <CopyButton
        text={() => location.href.split("#")[0] + timelineLink(state)}
        label="link to this view"
        shown="copy link"
      />
      <SaveMenu
        choices={{
          "Perfetto, Chrome": () => saved("leadline-trace.json", "application/json", chromeTrace(profile, timeline)),
          PNG: () =>
            chart()
              ?.picture()
              .then((blob) => saved("timeline.png", "image/png", blob)),
        }}
      />
    </div>
  );
}
