// The flame graph page: its controls, what is zoomed and searched for, and the panel with details.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rankProfile, ranksAlone, ranksMeasured } from "../../model/alone";
import type { Profile } from "../../model/profile";
import { scopesOf } from "../../model/scopes";
import { BadPattern, Search, type Found } from "../../model/search";
import { metricName, number, share } from "../../model/units";
import { transformOf } from "../../model/transforms";
import { TreeView, type ViewNode, type ViewOptions } from "../../model/view";
import { DrawingLayers, type Layers } from "../canvas";
import type { Opened } from "../opened";
import { saved, SaveMenu } from "../saving";
import { CopyButton, ProcessChoice, Toggle } from "../widgets";
import { COLOURINGS, colouring, type ColourName } from "./colouring";
import { Crumbs, Transforms } from "./crumbs";
import { Details } from "./details";
import { svgOf } from "./picture";
import { FlameGraph } from "./graph";
import { Beside, Tip } from "./legend";
import { Sandwich } from "./sandwich";
import { toLink, type FlameState } from "./state";

interface Props {
  opened: Opened;
  state: FlameState;
  set(change: Partial<FlameState>): void;
  shown: boolean;
  /** Hands the graph out for keys that work on every page. */
  handle(flame: FlameHandle): void;
  /** Told which row is zoomed to, null for all. */
  zoomed?(row: number | null): void;
}

export interface FlameHandle {
  focusSearch(): void;
  back(): void;
  nextMetric(): void;
  nextColour(): void;
}

export function FlamePage({ opened: job, state, set, shown, handle, zoomed: tell }: Props) {
  const opened = useMemo(() => alone(job, state.rank), [job.profile, job.findings, job.comparison.diff, state.rank]);
  const { profile } = opened;
  const metrics = profile.metrics.drawn;
  const options = viewOptions(state);
  const views = useRef(new Map<string, TreeView>());
  const viewOf = (wanted: ViewOptions) => {
    const key = JSON.stringify([wanted, state.rank]);
    let view = views.current.get(key);
    if (!view) views.current.set(key, (view = new TreeView(profile, wanted)));
    return view;
  };
  const view = viewOf(options);
  const graph = useRef<FlameGraph | null>(null);
  const layers = useRef<Partial<Layers>>({});
  const minimap = useRef<HTMLCanvasElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const [selected, select] = useState<ViewNode | null>(null);
  const [zoomed, setZoomed] = useState<ViewNode>(view.root);
  const [tip, setTip] = useState<{ node: ViewNode; x: number; y: number } | null>(null);
  const [sandwich, setSandwich] = useState<ViewNode | null>(null);
  const searching = useMemo(
    () => searched(opened, state.search, options.metric),
    [state.search, options.metric, profile],
  );

  useEffect(() => {
    const made = new FlameGraph(layers.current as Layers, minimap.current as HTMLCanvasElement, view, {
      select,
      clicked: (node) => follow(opened, node),
      zoomed: setZoomed,
      hover: (node, x, y) => setTip(node ? { node, x, y } : null),
    });
    graph.current = made;
    return () => made.close();
  }, []);

  // what is looked at has changed: another view, and a row that was asked for
  const asked = useRef<{ row: number | null }>({ row: null });
  useEffect(() => {
    graph.current?.show(view);
    select(null);
    setSandwich(null);
    setZoomed(view.root);
    asked.current = { row: null };
  }, [view]);
  const told = useRef(false);
  useEffect(() => {
    // at first all is shown, until the row is zoomed to that a link asks for
    if (told.current || !state.row) tell?.(zoomed.parent && !options.inverted ? zoomed.at[0] : null);
    told.current = true;
  }, [zoomed]);
  useEffect(() => {
    if (state.row === null || asked.current.row === state.row || options.inverted) return;
    asked.current.row = state.row;
    zoom(view.find(state.row));
  }, [state.row, state.asked, view]);
  useEffect(() => {
    const { found } = searching;
    graph.current?.search(found ? (node) => found.frames[view.frameOf(node)] === 1 : null);
  }, [searching, view]);
  const { comparison } = opened;
  const ranks = useMemo(() => ranksAlone(job.profile), [job.profile]);
  const possible = { diff: comparison.possible && state.rank < 0, ranks: state.rank >= 0 } as Record<string, boolean>;
  const colours = (Object.keys(COLOURINGS) as ColourName[]).filter((name) => possible[name] ?? true);
  const colour = colours.includes(state.colour) ? state.colour : "kind";
  useEffect(() => {
    if (colour === "diff") comparison.wanted();
  }, [colour]);
  useEffect(
    () => graph.current?.colourBy(colouring(colour, view, comparison.diff, job.profile)),
    [colour, view, opened.findings, comparison.diff],
  );
  useEffect(() => {
    const rows = new Set((opened.findings?.findings ?? []).flatMap((one) => one.paths));
    graph.current?.markBadges(rows.size ? (node) => node.at.some((row) => rows.has(row)) : null);
  }, [opened.findings, view]);
  useEffect(() => {
    if (shown) graph.current?.refresh();
  }, [shown, sandwich]);

  const zoom = (node: ViewNode) => {
    setSandwich(null);
    graph.current?.zoomTo(node);
    graph.current?.select(node);
    select(node);
  };
  /** Select a frame chosen elsewhere; zoom out as far as it takes to see it. */
  const open = (node: ViewNode) => {
    let out = graph.current?.zoom ?? view.root;
    while (out.parent && !isAbove(out, node)) out = out.parent;
    if (out !== graph.current?.zoom) graph.current?.zoomTo(out);
    graph.current?.select(node);
    select(node);
  };
  const nextFound = (step: number) => {
    const { found } = searching;
    if (!found || !graph.current) return;
    const nodes = graph.current.laid.boxes
      .filter((box) => box.node.parent && found.frames[view.frameOf(box.node)])
      .sort((a, b) => a.x - b.x || a.row - b.row)
      .map((box) => box.node);
    if (!nodes.length) return;
    const at = graph.current.selected ? nodes.indexOf(graph.current.selected) : -1;
    open(nodes[(at + step + nodes.length) % nodes.length]);
  };
  const callers = (node: ViewNode) => {
    const group = node.group;
    set({ inverted: true });
    const inverted = viewOf({ ...options, inverted: true });
    const same = inverted.children(inverted.root).find((one) => one.group === group);
    if (same) setTimeout(() => zoom(same));
  };

  handle({
    focusSearch: () => {
      searchBox.current?.focus();
      searchBox.current?.select();
    },
    // Escape: first what lies over the graph, then the search, then the zoom.
    back: () => {
      if (sandwich) setSandwich(null);
      else if (state.search) set({ search: "" });
      else zoom(view.root);
    },
    nextMetric: () => {
      const names = metrics.map((metric) => metric.name);
      if (names.length) set({ metric: names[(names.indexOf(options.metric) + 1) % names.length] });
    },
    nextColour: () => set({ colour: colours[(colours.indexOf(colour) + 1) % colours.length] }),
  });

  const flip = (name: "inverted" | "hideLibrary" | "foldLayers" | "joinProcesses" | "collapseRecursion") =>
    set({ [name]: !state[name] });
  return (
    <>
      <h2 class="offscreen">Flame graph</h2>
      <div class="toolbar">
        <select
          aria-label="Width of the boxes"
          title="Width of the boxes (m)"
          value={options.metric}
          onChange={(event) => set({ metric: event.currentTarget.value })}
        >
          {metrics.map((metric) => (
            <option value={metric.name}>{metricName(metric.name)}</option>
          ))}
        </select>
        <Toggle
          label="Bottom-up"
          title="Invert the tree: at the top the frames that spent the time, below them their callers (i)"
          on={state.inverted}
          flip={() => flip("inverted")}
        />
        <Toggle
          label="Hide libraries"
          title="Leave out Python frames of the standard library and of packages (h)"
          on={state.hideLibrary}
          flip={() => flip("hideLibrary")}
        />
        <Toggle
          label="Fold layers"
          title="Show numbered layers (h.0, h.1, ...) as one (l)"
          on={state.foldLayers}
          flip={() => flip("foldLayers")}
        />
        {profile.tables.processes.pid.length > 1 ? (
          <Toggle
            label="Join processes"
            title="Show the same call path of all processes and threads as one (p)"
            on={state.joinProcesses}
            flip={() => flip("joinProcesses")}
          />
        ) : null}
        <Toggle
          label="Fold recursion"
          title="Draw a frame that calls itself once (r)"
          on={state.collapseRecursion}
          flip={() => flip("collapseRecursion")}
        />
        <Toggle
          label="In time order"
          title="Order boxes by when they were first called, not by size"
          on={state.order === "time"}
          flip={() => set({ order: state.order === "time" ? "size" : "time" })}
        />
        <ProcessChoice
          profile={profile}
          value={processOf(profile, zoomed, state.joinProcesses)}
          choose={(row) =>
            row < 0
              ? set({ row: 0, asked: state.asked + 1 })
              : set({
                  row: profile.tables.processes.node[row],
                  asked: state.asked + 1,
                  joinProcesses: false,
                  inverted: false,
                })
          }
        />
        {ranks.length ? (
          <select
            aria-label="Rank"
            title="All ranks together, or one that was late alone"
            value={String(state.rank)}
            onChange={(event) => {
              const rank = Number(event.currentTarget.value);
              set({ rank, colour: rank >= 0 ? "ranks" : "kind" });
            }}
          >
            <option value="-1">all ranks</option>
            {ranks.map((rank) => (
              <option value={String(rank)}>rank {rank} alone</option>
            ))}
          </select>
        ) : null}
        <select
          aria-label="Colour of the boxes"
          title="Colour of the boxes (c)"
          value={colour}
          onChange={(event) => set({ colour: event.currentTarget.value as ColourName })}
        >
          {colours.map((name) => (
            <option value={name}>{COLOURINGS[name]}</option>
          ))}
        </select>
        <span class="grow" />
        <span class="quiet found" role="status">
          {searching.said}
        </span>
        <input
          ref={searchBox}
          type="search"
          placeholder="Search name or file (/)"
          aria-label="Search frames; /.../ is a regular expression"
          spellcheck={false}
          value={state.search}
          onInput={(event) => set({ search: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            nextFound(event.shiftKey ? -1 : 1);
          }}
        />
        <CopyButton text={() => link(selected, zoomed)} label="link to this view" shown="copy link" />
        <SaveMenu
          choices={{
            SVG: () => graph.current && saved("flame.svg", "image/svg+xml", svgOf(graph.current, view)),
            PNG: () => graph.current?.picture().then((blob) => saved("flame.png", "image/png", blob)),
          }}
        />
      </div>
      <Transforms list={state.transforms} put={(transforms) => set({ transforms, row: null })} />
      <Crumbs view={view} zoomed={zoomed} zoom={zoom} />
      <div class="flame-main">
        <div class="flame-left">
          <canvas class="minimap" ref={minimap} aria-hidden="true" />
          <DrawingLayers
            layers={layers.current}
            name="flame"
            label="Flame graph; arrow keys move, Enter zooms, Escape zooms out; the panel next to it describes the selection"
          />
          {sandwich ? <Sandwich view={view} node={sandwich} close={() => setSandwich(null)} open={zoom} /> : null}
          <Beside
            opened={opened}
            view={view}
            changes={colour === "diff"}
            colour={colour}
            others={colour === "ranks" ? ranksMeasured(job.profile) - 1 : 0}
          />
          {tip ? <Tip opened={opened} view={view} tip={tip} /> : null}
        </div>
        <Details
          opened={opened}
          view={view}
          node={selected}
          job={job.profile}
          actions={{
            open,
            zoom,
            callers,
            sandwich: setSandwich,
            transform: (kind, node) =>
              set({
                transforms: [...state.transforms, transformOf(profile, kind, node.at[0], view.label(node))],
                row: null,
              }),
            row: (row) => set({ row, asked: state.asked + 1, inverted: false }),
            spenders: () => {
              const bottomUp = viewOf({ ...options, inverted: true });
              return { view: bottomUp, nodes: bottomUp.children(bottomUp.root).slice(0, 14) };
            },
          }}
        />
      </div>
    </>
  );

  function link(node: ViewNode | null, zoomedTo: ViewNode): string {
    const wanted = node ?? (zoomedTo.parent ? zoomedTo : null);
    return location.href.split("#")[0] + toLink(state, job.profile, wanted && !state.inverted ? wanted.at[0] : null);
  }
}

/** What is open with the measurements of one rank alone; rows of the tree mean the same. */
function alone(job: Opened, rank: number): Opened {
  if (rank < 0) return job;
  const profile = rankProfile(job.profile, rank);
  return { ...job, profile, search: new Search(profile) };
}

/** Row of the process whose part of the tree is zoomed to, -1 for none. */
function processOf(profile: Profile, zoomed: ViewNode, joined: boolean): number {
  if (joined) return -1;
  const { node } = profile.tables.processes;
  for (let at: ViewNode | null = zoomed; at; at = at.parent) {
    const row = node.indexOf(at.at[0]);
    if (row >= 0 && at.parent) return row;
  }
  return -1;
}

/** Tells the host which line was clicked: the frame's own, or the user's line that it is booked on. */
function follow({ host, profile }: Opened, node: ViewNode): void {
  if (!node.parent || !host.clicked) return;
  const own = profile.frame[node.at[0]];
  const user = scopesOf(profile).user[node.at[0]];
  const frame = profile.line(own) > 0 ? own : user >= 0 ? profile.frame[user] : -1;
  if (frame >= 0) host.clicked(profile.frameText("file", frame), profile.line(frame));
}

function viewOptions(state: FlameState): ViewOptions {
  const { metric, inverted, hideLibrary, foldLayers, joinProcesses, collapseRecursion, order, transforms } = state;
  return { metric, inverted, hideLibrary, foldLayers, joinProcesses, collapseRecursion, order, transforms };
}

function searched(opened: Opened, text: string, metric: string): { found: Found | null; said: string } {
  try {
    const found = opened.search.find(text, metric);
    if (!found) return { found, said: "" };
    const total = opened.profile.metrics.values(metric).whole[0];
    const said = found.count
      ? `${share(found.sum, total)} in ${number(found.count)} place${found.count === 1 ? "" : "s"}`
      : "nothing found";
    return { found, said };
  } catch (error) {
    if (error instanceof BadPattern) return { found: null, said: error.message };
    throw error;
  }
}

function isAbove(node: ViewNode, other: ViewNode): boolean {
  for (let at: ViewNode | null = other; at; at = at.parent) if (at === node) return true;
  return false;
}
