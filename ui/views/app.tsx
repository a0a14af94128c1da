// Puts the page together: header, tabs, keys, theme, and the way from one page to another.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import { shownFiles } from "../model/program";
import { openProfile } from "../model/reader";
import type { Findings, Report } from "../model/report";
import { samePath } from "../model/same_path";
import { Search } from "../model/search";
import { storedReport } from "../model/stored";
import { visible } from "../model/units";
import { placeOf, sourceLink, sourceOf, went } from "./address";
import { CapturePage } from "./capture";
import { ChangesPage } from "./changes/tab";
import { useComparison } from "./comparison";
import { DiffPage } from "./diff/page";
import { FlamePage, type FlameHandle } from "./flame/page";
import { firstState, fromLink, toLink, type FlameState } from "./flame/state";
import { emptyPages } from "./empty";
import { Guard } from "./guard";
import { Header, type Live, type LiveState } from "./header";
import { Help, Logo } from "./help";
import type { Host } from "./host";
import { switchTheme } from "./keys";
import { KernelsPage } from "./kernels/page";
import type { Opened } from "./opened";
import { StartPage } from "./start/page";
import { SourcePage, type SourcePlace } from "./source/page";
import { TimelinePage } from "./timeline/page";
import { TablesPage, type TableName } from "./tables/page";
import { AS_OPENED, stateOf, tableLink, type TableState } from "./tables/place";

const PAGES = ["overview", "flame", "tables", "timeline", "source", "kernels", "changes", "diff", "capture"];

/** Its place in links, its heading, itself. */
type Tab = [string, string, preact.JSX.Element];

/** What Python says of a profile; `trouble` is why it says nothing. */
interface Said {
  report: Report | null;
  findings: Findings | null;
  trouble: string;
}

/** Keys that mean something on the timeline wherever the focus is. */
const TIMELINE_KEYS = ["/", "f", "m", "n", "0", "w", "s", "+", "-"];

/** How long the overview waits for Python before it shows what the page makes itself: what comes soon need not replace it. */
const GRACE_MS = 600;

/** After which a page that has nothing to show yet says that it reads. */
const SLOW_MS = 300;

/** How often a page that is held looks whether it still is. */
const HELD_MS = 300;

/** What stays when the next look at a run is shown. */
interface Kept {
  flame: FlameState | null;
  table: { name: TableName; state: TableState } | null;
  /** The row that the flame graph is zoomed to. */
  zoomed: number | null;
}

/** Opens the first profile of the host and shows it in `root`; whatever goes wrong is a sentence on the page. */
export async function start(root: HTMLElement, makeHost: () => Host): Promise<void> {
  try {
    const host = makeHost();
    const bytes = host.bytes(0);
    const said = asked(host);
    const slow = setTimeout(() => render(<Reading />, root), SLOW_MS);
    const profile = await openProfile(await bytes.finally(() => clearTimeout(slow)));
    const waits = ["", "overview"].includes(placeOf(location.hash).page) ? GRACE_MS : 0;
    const early = await Promise.race([said, new Promise<null>((done) => setTimeout(() => done(null), waits))]);
    if (host.changed) await follow(root, host, { host, profile, early, said });
    else render(<App host={host} profile={profile} early={early} said={said} />, root);
  } catch (error) {
    render(<Failure error={error} />, root);
  }
}

/** Shows a run that goes on: each look in its turn, where and how its reader looks at it, unless the reader holds it. */
async function follow(root: HTMLElement, host: Host, first: AppProps): Promise<void> {
  const kept: Kept = { flame: null, table: null, zoomed: null };
  let props = first;
  let look = 0;
  let held = false;
  const draw = (state: LiveState) => {
    const hold = () => {
      held = !held;
      draw(held ? "held" : "live");
    };
    render(<App key={look} {...props} kept={kept} live={{ state, look, hold }} />, root);
  };
  draw("live");
  try {
    while (await host.changed?.()) {
      while (held) await new Promise((done) => setTimeout(done, HELD_MS));
      const profile = await openProfile(await host.bytes(0));
      const early = await asked(host);
      if (kept.zoomed !== null) kept.zoomed = samePath(props.profile, kept.zoomed, profile) || null;
      props = { host, profile, early, said: Promise.resolve(early) };
      look++;
      draw(held ? "held" : "live");
    }
    draw("ended");
  } catch {
    draw("lost");
  }
}

function tableOf(place: ReturnType<typeof placeOf>): { name: TableName; state: TableState } {
  return { name: place.table, state: stateOf(place.parameters) };
}

async function asked(host: Host): Promise<Said> {
  const findings = host.findings(0).catch(() => null);
  try {
    return { report: await host.report(0), findings: await findings, trouble: "" };
  } catch (error) {
    return { report: null, findings: await findings, trouble: error instanceof Error ? error.message : String(error) };
  }
}

function Reading() {
  return (
    <main class="failure" aria-busy="true">
      <Logo />
      <p role="status" class="quiet">
        Reading the profile …
      </p>
    </main>
  );
}

function Failure({ error }: { error: unknown }) {
  const known = error instanceof Error && ["ProfileFileError", "HostError"].includes(error.name);
  const sentence = error instanceof Error ? error.message : String(error);
  return (
    <main class="failure">
      <Logo />
      <h1>This profile cannot be shown</h1>
      <p role="alert">{visible(sentence)}</p>
      {known ? null : <p class="quiet">This is a fault of the page; the file is untouched.</p>}
    </main>
  );
}

interface AppProps {
  host: Host;
  profile: Profile;
  /** What Python has said so far. */
  early: Said | null;
  said: Promise<Said>;
}

interface LiveProps {
  kept?: Kept;
  live?: Live;
}

function App({ host, profile, early, said, kept, live }: AppProps & LiveProps) {
  const [python, setPython] = useState(early);
  useEffect(() => {
    if (!python) void said.then(setPython);
  }, []);
  const own = useMemo(() => storedReport(profile, host.names[0]), []);
  const report = useMemo(
    () => (python?.report ? { ...python.report, tables: python.report.tables ?? own.tables } : own),
    [python],
  );
  const findings = python?.findings ?? null;
  const short = useMemo(() => shownFiles(profile), []);
  const search = useMemo(() => new Search(profile), []);
  const comparison = useComparison(host, profile);
  const inside = useMemo(() => profile.metrics.values("instruction_samples").whole[0] > 0, []);
  const [page, setPage] = useState(() =>
    location.hash ? placeOf(location.hash).page : host.names.length > 1 ? "diff" : "overview",
  );
  const [flameState, setFlame] = useState<FlameState>(() =>
    kept?.flame
      ? { ...kept.flame, row: kept.zoomed }
      : { ...firstState(profile), ...fromLink(placeOf(location.hash).parameters, profile) },
  );
  const [table, setTable] = useState(() => kept?.table ?? tableOf(placeOf(location.hash)));
  const [place, setPlace] = useState<SourcePlace>(() => ({ ...sourceOf(placeOf(location.hash).parameters), asked: 0 }));
  const [help, setHelp] = useState(false);
  const [zoomed, setZoomed] = useState<number | null>(flameState.row || null);
  const flame = useRef<FlameHandle | null>(null);

  useEffect(() => {
    if (kept) [kept.flame, kept.table] = [flameState, table];
  }, [flameState, table]);

  const show = (name: string) => {
    setPage(name);
    if (placeOf(location.hash).page !== name) went(name === "tables" ? tableLink(table.name, table.state) : `#${name}`);
  };
  const chooseTable = (name: TableName) => {
    setTable({ name, state: AS_OPENED });
    went(tableLink(name, AS_OPENED));
  };
  const lookAtTable = (change: Partial<TableState>) => {
    const state = { ...table.state, ...change };
    setTable({ name: table.name, state });
    went(tableLink(table.name, state), true);
  };
  const setFlameState = (change: Partial<FlameState>) => setFlame((old) => ({ ...old, ...change }));
  const opened: Opened = {
    host,
    profile,
    report,
    findings,
    waiting: !python,
    search,
    comparison,
    shortFile: (file) => short.get(file) ?? file,
    go: {
      page: show,
      frame(row, metric) {
        const known = metric && profile.metrics.describe(metric) ? { metric } : {};
        setFlame((old) => ({ ...old, ...known, search: "", inverted: false, row, asked: old.asked + 1 }));
        show("flame");
      },
      search(text) {
        setFlameState({ search: text });
        show("flame");
      },
      rank(rank) {
        setFlameState({ rank, colour: "ranks", search: "", inverted: false });
        show("flame");
      },
      to(address) {
        went(address);
        dispatchEvent(new Event("hashchange"));
      },
      source(file, line) {
        setPlace((old) => ({ file, line, asked: old.asked + 1 }));
        setPage("source");
        went(sourceLink(file, line));
      },
    },
  };
  const known = PAGES.filter((name) => (name !== "kernels" || inside) && (name !== "changes" || host.changes));
  const current = known.includes(page) ? page : "overview";
  const pages: Tab[] = [
    ["overview", "Overview", <StartPage opened={opened} shown={current === "overview"} />],
    [
      "flame",
      "Flame graph",
      <FlamePage
        opened={opened}
        state={flameState}
        set={setFlameState}
        shown={current === "flame"}
        handle={(made) => (flame.current = made)}
        zoomed={(row) => {
          if (kept) kept.zoomed = row;
          setZoomed(row);
        }}
      />,
    ],
    [
      "tables",
      "Tables",
      <TablesPage
        opened={opened}
        table={table.name}
        state={table.state}
        say={lookAtTable}
        choose={chooseTable}
        shown={current === "tables"}
      />,
    ],
    ["timeline", "Timeline", <TimelinePage opened={opened} shown={current === "timeline"} />],
    ["source", "Source", <SourcePage opened={opened} place={place} shown={current === "source"} />],
    ...(inside ? [["kernels", "Kernels", <KernelsPage opened={opened} shown={current === "kernels"} />] as Tab] : []),
    ...(host.changes
      ? [["changes", "What if", <ChangesPage opened={opened} shown={current === "changes"} />] as Tab]
      : []),
    ["diff", "Compare", <DiffPage opened={opened} shown={current === "diff"} />],
    ["capture", "Trust", <CapturePage opened={opened} />],
  ];
  const names = pages.map(([name]) => name);
  const empty = useMemo(() => emptyPages(profile, host.names.length), [profile]);

  useEffect(() => {
    // on a phone the tabs scroll sideways
    document.getElementById(`tab-${current}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  useEffect(() => {
    const follow = () => {
      const place = placeOf(location.hash);
      setPage(place.page);
      if (place.page === "tables") setTable(tableOf(place));
      if (place.page === "source") setPlace((old) => ({ ...sourceOf(place.parameters), asked: old.asked + 1 }));
      if (place.page !== "flame") return;
      const asked = fromLink(place.parameters, profile);
      setZoomed(asked.row || null);
      setFlameState({ ...firstState(profile), ...asked, row: asked.row ?? 0, asked: Date.now() });
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    // the address says what is looked at: a zoom is a place that Back leaves, the rest is how it is looked at
    if (current !== "flame" || placeOf(location.hash).page !== "flame") return;
    const link = toLink(flameState, profile, flameState.inverted ? null : zoomed);
    const before = placeOf(location.hash).parameters.get("path");
    if (link !== location.hash) went(link, before === placeOf(link).parameters.get("path"));
  }, [current, flameState, zoomed]);
  useEffect(() => {
    const press = (event: KeyboardEvent) => key(event);
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });

  function key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const typing = target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && current === "flame") {
      flame.current?.back();
      if (typing) target.blur();
      return;
    }
    if (typing) return;
    const flip = (name: "inverted" | "hideLibrary" | "foldLayers" | "joinProcesses" | "collapseRecursion") => () =>
      setFlameState({ [name]: !flameState[name] });
    const acts: Record<string, () => void> = {
      i: flip("inverted"),
      h: flip("hideLibrary"),
      l: flip("foldLayers"),
      p: flip("joinProcesses"),
      r: flip("collapseRecursion"),
      m: () => flame.current?.nextMetric(),
      c: () => flame.current?.nextColour(),
      "/": () => setTimeout(() => flame.current?.focusSearch()),
    };
    if (current === "timeline" && TIMELINE_KEYS.includes(event.key)) {
      const chart = document.querySelector<HTMLElement>(".timeline-canvas");
      const box = document.querySelector<HTMLElement>("#page-timeline input[type=search]");
      if (event.key === "/") setTimeout(() => box?.focus());
      else if (target !== chart) chart?.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
      event.preventDefault();
      return;
    }
    const number = Number(event.key);
    if (number >= 1 && number <= names.length) show(names[number - 1]);
    else if (event.key === "d") show("diff");
    else if (event.key === "t") switchTheme();
    else if (event.key === "?") setHelp(true);
    else if (Object.hasOwn(acts, event.key)) {
      show("flame");
      acts[event.key]();
    } else return;
    event.preventDefault();
  }

  const { meta } = report;
  return (
    <>
      <Header
        opened={opened}
        tabs={pages.map(([name, title]) => [name, title])}
        current={current}
        empty={empty}
        show={show}
        live={live}
        help={() => setHelp(true)}
      />
      {meta.complete || (live && live.state !== "ended") ? null : (
        <aside class="banner" aria-label="Incomplete">
          The process was killed; data after the last flush is missing.
        </aside>
      )}
      {python?.trouble ? (
        <aside class="banner" aria-label="Trouble">
          {visible(python.trouble)}
        </aside>
      ) : null}
      <main>
        {pages.map(([name, , made]) => (
          <section
            class={`page ${name}-page`}
            id={`page-${name}`}
            role="tabpanel"
            aria-labelledby={`tab-${name}`}
            hidden={name !== current}
          >
            <Guard>{made}</Guard>
          </section>
        ))}
      </main>
      <Help open={help} close={() => setHelp(false)} />
    </>
  );
}
