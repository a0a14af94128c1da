// Pieces that several pages are made of. Texts from a profile pass through `Text` or `visible`, and only ever become text nodes.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Profile } from "../model/profile";
import { parted } from "../model/names";
import { programOf } from "../model/program";
import { processName } from "../model/timeline";
import { visible } from "../model/units";

const MOST_PROCESSES = 1024;

interface CardParts {
  title: string;
  note?: string;
  /** What a click on a part does; not printed. */
  click?: string;
  children: ComponentChildren;
}

export function Card({ title, note, click, children }: CardParts) {
  return (
    <section class="card">
      <header>
        <h2>{visible(title)}</h2>
        {note || click ? (
          <span class="quiet">
            {visible(note ?? "")}
            {click ? <span class="on-click">{`${note ? "; " : ""}${click}`}</span> : null}
          </span>
        ) : null}
      </header>
      {children}
    </section>
  );
}

export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="quiet empty">{children}</p>;
}

/** Where a view needs a trace window and there is none. */
export function NoWindow({ profile, so }: { profile: Profile; so: string }) {
  return (
    <Nothing>
      {profile.tables.ranks.rank.length ? (
        <>A folded job holds no trace window, {so}. Open the file of one of its ranks to see one.</>
      ) : (
        <>
          This profile holds no trace window, {so}. Record one with{" "}
          <code>{visible(`leadline run --trace steps=3 ${programOf(profile)}`)}</code>{" "}
          <CopyButton text={`leadline run --trace steps=3 ${programOf(profile)}`} label="command" />
        </>
      )}
    </Nothing>
  );
}

/** A sentence in which `backticks` enclose code. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {visible(text)
        .split(/`([^`]+)`/)
        .map((part, at) => (at % 2 ? <code>{part}</code> : part))}
    </>
  );
}

/** A name on one line, of which the middle goes where there is no room; the whole of it is the tooltip. */
export function Named({ text, title }: { text: string; title?: string }) {
  const [begin, end] = parted(text);
  return (
    <span class="named" title={visible(title ?? text)}>
      {begin ? <span class="begin">{visible(begin)}</span> : null}
      <span>{visible(end)}</span>
    </span>
  );
}

export type BarPart = [fraction: number, kind: string, title?: string];

/** A bar whose filled parts stack. */
export function Bar({ parts }: { parts: BarPart[] }) {
  return (
    <span class="bar">
      {parts.map(([fraction, kind, title]) => (
        <span class={`fill ${kind}`} title={title} style={{ width: cssWidth(fraction) }} />
      ))}
    </span>
  );
}

export function cssWidth(fraction: number): string {
  const value = Math.max(0, Math.min(100, 100 * fraction));
  return `${Number.isFinite(value) ? value : 0}%`;
}

export function Toggle(props: { label: string; title: string; on: boolean; flip: () => void }) {
  return (
    <button type="button" class="toggle" title={props.title} aria-pressed={props.on} onClick={props.flip}>
      {props.label}
    </button>
  );
}

/** Which process, or rank of a job, is shown; -1 for all. Nothing where there is one. */
export function ProcessChoice({
  profile,
  value,
  choose,
}: {
  profile: Profile;
  value: number;
  choose(row: number): void;
}) {
  const { pid } = profile.tables.processes;
  if (pid.length < 2) return null;
  return (
    <select
      aria-label="Process or rank"
      value={String(value)}
      onChange={(event) => choose(Number(event.currentTarget.value))}
    >
      <option value="-1">all processes</option>
      {[...pid].slice(0, MOST_PROCESSES).map((_, row) => (
        <option value={String(row)}>{visible(processName(profile, row))}</option>
      ))}
    </select>
  );
}

export function CopyButton(props: { text: string | (() => string); label: string; shown?: string }) {
  const { text, label, shown = "copy" } = props;
  const [said, say] = useState(shown);
  // what is read aloud holds what is seen
  const name = `copy ${label}`.includes(shown.toLowerCase()) ? `Copy ${label}` : undefined;
  const copy = async (event: MouseEvent) => {
    event.stopPropagation();
    say((await copyText(typeof text === "string" ? text : text())) ? "copied" : "select it");
    setTimeout(() => say(shown), 1200);
  };
  return (
    <button type="button" class="copy-button" title={`Copy ${label}`} aria-label={name} onClick={copy}>
      {said}
    </button>
  );
}

/** Clipboard access is refused to pages opened from disk in some browsers; a selection works everywhere. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.className = "offscreen";
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

export function KindChip({ kind }: { kind: string }) {
  return (
    <span class="chip kind">
      <Dot kind={kind} />
      {kind}
    </span>
  );
}

/** What red and blue mean. */
export function DiffLegend() {
  return (
    <span class="legend">
      <span>
        <span class="dot less" />
        less than before
      </span>
      <span>
        <span class="dot more" />
        more than before
      </span>
    </span>
  );
}

export function Dot({ kind }: { kind: string }) {
  return <span class={`dot ${/^[a-z]+$/.test(kind) ? kind : "native"}`} />;
}
