// An answer about changes as a page of its own, as `leadline whatif -o x.html` and `leadline try -o x.html` write it.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import type { Changes } from "../../model/changes";
import { visible } from "../../model/units";
import { Logo } from "../help";
import { switchTheme } from "../keys";
import { ChangesView } from "./view";

export function showChanges(root: HTMLElement, changes: Changes): void {
  render(<Alone changes={changes} />, root);
}

function Alone({ changes }: { changes: Changes }) {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.altKey) switchTheme();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <>
      <header class="top">
        <Logo />
        <div class="program">
          <h1 title={visible(changes.program)}>{visible(changes.program)}</h1>
          <div class="quiet small">{visible(`${changes.title} · ${changes.facts}`)}</div>
        </div>
        <span class="grow" />
        <div class="tools">
          <button type="button" title="Light or dark (t)" aria-label="Light or dark" onClick={switchTheme}>
            ◐
          </button>
        </div>
      </header>
      <main>
        <section class="page overview-page">
          <ChangesView changes={changes} />
        </section>
      </main>
    </>
  );
}
