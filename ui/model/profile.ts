// A profile as plain data: its tables, its texts, its tree. Everything that is shown is a pure function of it.

import { isDispatch, isLibrary, kindName } from "./frames";
import { Metrics } from "./metrics";
import type { Tables } from "./schema.generated";

/** A row of the table `nodes`, and of `frames`. */
export type NodeRow = number;
export type FrameRow = number;

/** meta.json: someone else's data; every value is looked at before it is used. */
export interface Meta {
  format: { name: string; version: number };
  leadline?: unknown;
  started_at_ns?: unknown;
  wall_ns?: unknown;
  complete?: unknown;
  program: Record<string, unknown>;
  asked: Record<string, unknown>;
  available: Record<string, unknown>;
  cost: Record<string, unknown>;
  clock: Record<string, unknown>;
  host: Record<string, unknown>;
  processes: unknown[];
  findings?: unknown;
  /** What `leadline analyze --save` keeps of the report. */
  report?: unknown;
  /** What the kernel's recorder says of itself. */
  kernel?: { from_ns?: unknown; until_ns?: unknown };
  /** Set where a report was cut to a size: what is drawn together. */
  pruned?: unknown;
}

export class Profile {
  readonly size: number;
  readonly parent: Int32Array;
  readonly frame: Uint32Array;
  /** Children of a node are `childRows[childStart[row]..childStart[row + 1]]`. */
  readonly childStart: Int32Array;
  readonly childRows: Int32Array;
  readonly metrics: Metrics;
  private readonly texts: (string | undefined)[] = [];
  private libraries: Uint8Array | null = null;
  private readonly decoder = new TextDecoder();

  constructor(
    readonly tables: Tables,
    readonly meta: Meta,
  ) {
    this.parent = tables.nodes.parent;
    this.frame = tables.nodes.frame;
    this.size = this.parent.length;
    const start = new Int32Array(this.size + 1);
    for (let row = 1; row < this.size; row++) start[this.parent[row] + 1]++;
    for (let row = 0; row < this.size; row++) start[row + 1] += start[row];
    const next = start.slice();
    this.childRows = new Int32Array(Math.max(0, this.size - 1));
    for (let row = 1; row < this.size; row++) this.childRows[next[this.parent[row]]++] = row;
    this.childStart = start;
    this.metrics = new Metrics(this);
  }

  /** String `row` of the string table; bytes that are no UTF-8 become U+FFFD. */
  text(row: number): string {
    return (this.texts[row] ??= this.decoder.decode(
      this.tables.strings.bytes.subarray(this.tables.strings.offsets[row], this.tables.strings.offsets[row + 1]),
    ));
  }

  get textCount(): number {
    return this.tables.strings.offsets.length - 1;
  }

  frameText(column: "name" | "file" | "module" | "detail", frame: FrameRow): string {
    return this.text(this.tables.frames[column][frame]);
  }

  kindOfFrame(frame: FrameRow): string {
    return kindName(this.tables.frames.kind[frame]);
  }

  kind(row: NodeRow): string {
    return this.kindOfFrame(this.frame[row]);
  }

  name(row: NodeRow): string {
    return this.frameText("name", this.frame[row]);
  }

  line(frame: FrameRow): number {
    return this.tables.frames.line[frame];
  }

  /** Whether a frame is Python code of the standard library or of a package, or native code that only calls other. */
  library(frame: FrameRow): boolean {
    if (!this.libraries) {
      const { kind, file, name } = this.tables.frames;
      const files = new Map<number, boolean>();
      const names = new Map<number, boolean>();
      const asked = (known: Map<number, boolean>, text: number, isOne: (text: string) => boolean) => {
        let answer = known.get(text);
        if (answer === undefined) known.set(text, (answer = isOne(this.text(text))));
        return answer;
      };
      this.libraries = new Uint8Array(kind.length);
      for (let i = 0; i < kind.length; i++) {
        const of = kindName(kind[i]);
        if (of === "python") this.libraries[i] = Number(asked(files, file[i], isLibrary));
        if (of === "native") this.libraries[i] = Number(asked(names, name[i], isDispatch));
      }
    }
    return this.libraries[frame] === 1;
  }

  /** From the root to `row`, both included. */
  path(row: NodeRow): NodeRow[] {
    const rows = [];
    for (let at = row; at >= 0; at = this.parent[at]) rows.push(at);
    return rows.reverse();
  }

  children(row: NodeRow): Int32Array {
    return this.childRows.subarray(this.childStart[row], this.childStart[row + 1]);
  }
}
