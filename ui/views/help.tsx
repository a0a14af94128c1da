// The list of keys, and the mark of the house.

import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["1 – 7", "the pages, in the order of their tabs"],
  ["/", "search the flame graph or the timeline; Enter goes through what was found; /.../ is a regular expression"],
  ["i", "bottom-up or top-down"],
  ["h", "hide or show library frames"],
  ["l", "fold numbered layers"],
  ["p", "join processes and threads"],
  ["r", "draw a frame that calls itself once"],
  ["m", "next metric"],
  ["c", "next colouring: kind, module, heat, and what changed where two profiles are open"],
  [
    "arrows",
    "move over the frames; in the timeline over the events of a lane and its rows, with Shift a range of them",
  ],
  ["Page Up, Page Down", "in the timeline, the lane above or below"],
  ["Enter, double-click", "zoom in"],
  ["+ -, w s, Ctrl and wheel", "zoom freely; a d, dragging and the small picture pan"],
  ["f, m, n", "in the timeline: fit what is selected, mark it as a range, write a note there"],
  ["Esc", "clear the search, then zoom out; in the timeline clear the selection"],
  ["d", "the comparison, where two profiles are open"],
  ["t", "light or dark"],
  ["?", "this list"],
];

export function Help({ open, close }: { open: boolean; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-label="Keys"
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <h2>Keys</h2>
      <table>
        <tbody>
          {KEYS.map(([key, what]) => (
            <tr>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" class="plain" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

/** A sounding lead on its line. */
export function Logo() {
  return (
    <svg viewBox="0 0 24 24" class="logo" aria-hidden="true">
      <path d="M12 2v11M12 13l3.4 4.2L12 22l-3.4-4.8z" />
    </svg>
  );
}
