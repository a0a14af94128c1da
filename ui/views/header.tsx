// The top of the page: the program, the tabs, light or dark; of a run that goes on whether it is followed.

import { duration, visible } from "../model/units";
import { Logo } from "./help";
import { arrows, switchTheme } from "./keys";
import type { Opened } from "./opened";

export type LiveState = "live" | "held" | "ended" | "lost";

const LIVE_SAYS: Record<LiveState, [string, string]> = {
  live: ["Live", "Follows the run; press to pause"],
  held: ["Paused", "Press to follow the run"],
  ended: ["Ended", "The run has ended; this is its file"],
  lost: ["Not live", "The server has ended; run `leadline view --live` again"],
};

export interface Live {
  state: LiveState;
  look: number;
  hold(): void;
}

interface Props {
  opened: Opened;
  /** Name and title. */
  tabs: [string, string][];
  current: string;
  /** Why a tab is empty. */
  empty: Record<string, string>;
  show(name: string): void;
  live: Live | undefined;
  help(): void;
}

export function Header({ opened: { report }, tabs, current, empty, show, live, help }: Props) {
  const names = tabs.map(([name]) => name);
  const { meta } = report;
  const facts = [
    meta.started_at.replace("T", " ").replace("Z", " UTC"),
    meta.wall_ns ? duration(meta.wall_ns) : "",
    meta.python && `Python ${meta.python}`,
    ...meta.frameworks,
    meta.host,
  ].filter(Boolean);
  return (
    <header class="top">
      <Logo />
      <div class="program">
        <h1 title={visible(meta.program)}>{visible(meta.program.replace(/^\S*\//, ""))}</h1>
        <div class="quiet small">{visible(facts.join(" · "))}</div>
      </div>
      <div class="tabs" role="tablist" aria-label="Pages" onKeyDown={(event) => arrows(event, names, current, show)}>
        {tabs.map(([name, title]) => (
          <button
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-controls={`page-${name}`}
            aria-selected={name === current}
            class={empty[name] ? "faint" : ""}
            title={empty[name]}
            tabIndex={name === current ? 0 : -1}
            onClick={() => show(name)}
          >
            {title}
            {name === "capture" && report.losses.length ? (
              <span class="badge" title="Something was not measured">
                !
              </span>
            ) : null}
          </button>
        ))}
      </div>
      <div class="tools">
        {live ? (
          <button
            type="button"
            class={`live ${live.state}`}
            data-look={live.look}
            title={LIVE_SAYS[live.state][1]}
            aria-pressed={live.state === "live"}
            disabled={live.state === "ended" || live.state === "lost"}
            onClick={live.hold}
          >
            {LIVE_SAYS[live.state][0]}
          </button>
        ) : null}
        <button type="button" title="Light or dark (t)" aria-label="Light or dark" onClick={switchTheme}>
          ◐
        </button>
        <button type="button" title="Keys (?)" aria-label="Keys" onClick={help}>
          ?
        </button>
      </div>
    </header>
  );
}
