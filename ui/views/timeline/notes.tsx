// Notes on the timeline: a moment with a text. They are kept in the address, so a link carries them.

import { duration } from "../../model/units";
import type { Note } from "./state";

interface Props {
  notes: readonly Note[];
  put(notes: Note[]): void;
  look(at: number): void;
}

export function Notes({ notes, put, look }: Props) {
  if (!notes.length) return null;
  return (
    <>
      <h4>Notes</h4>
      {notes.map((note, i) => (
        <div class="note">
          <button type="button" class="plain" title="Look there" onClick={() => look(note.at)}>
            {duration(note.at)}
          </button>
          <input
            type="text"
            aria-label={`Note at ${duration(note.at)}`}
            maxLength={200}
            value={note.text}
            ref={(input) => {
              if (!note.text) input?.focus();
            }}
            onInput={(event) =>
              put(notes.map((one, at) => (at === i ? { ...one, text: event.currentTarget.value } : one)))
            }
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove the note at ${duration(note.at)}`}
            onClick={() => put(notes.filter((_, at) => at !== i))}
          >
            ×
          </button>
        </div>
      ))}
    </>
  );
}
