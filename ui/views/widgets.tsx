// Pieces that several pages are made of. Texts from a profile pass through `Text` or `visible`, and only ever become text nodes.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { visible } from "../model/units";

export function Card({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <header>
        <h2>{visible(title)}</h2>
        {note ? <span class="quiet">{visible(note)}</span> : null}
      </header>
      {children}
    </section>
  );
}

export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="quiet empty">{children}</p>;
}

export type BarPart = [fraction: number, kind: string, title?: string];

/** A bar whose filled parts stack. */
export function Bar({ parts }: { parts: BarPart[] }) {
  return (
    <span class="bar">
      {parts.map(([fraction, kind, title]) => (
        <span class={`fill ${kind}`} title={title} style={{ width: percent(fraction) }} />
      ))}
    </span>
  );
}

export function percent(fraction: number): string {
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

export function CopyButton(props: { text: string | (() => string); label: string; shown?: string }) {
  const { text, label, shown = "copy" } = props;
  const [said, say] = useState(shown);
  const copy = async (event: MouseEvent) => {
    event.stopPropagation();
    say((await copyText(typeof text === "string" ? text : text())) ? "copied" : "select it");
    setTimeout(() => say(shown), 1200);
  };
  return (
    <button type="button" class="copy-button" title={`Copy ${label}`} aria-label={`Copy ${label}`} onClick={copy}>
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

export function Dot({ kind }: { kind: string }) {
  return <span class={`dot ${/^[a-z]+$/.test(kind) ? kind : "native"}`} />;
}
