// Spans of the timeline as columns while they are collected, and the texts of those that are no call path.

/** What a span is that is no call path: a thread's state, work that was predicted. */
export interface SpanText {
  name: string;
  kind: string;
}

/** Texts of spans, each once. */
export class Texts {
  readonly list: SpanText[] = [];
  private readonly known = new Map<string, number>();

  static from(list: readonly SpanText[]): Texts {
    const made = new Texts();
    for (const { name, kind } of list) made.node(name, kind);
    return made;
  }

  /** What `node` of such a span is. */
  node(name: string, kind: string): number {
    const key = `${kind} ${name}`;
    let row = this.known.get(key);
    if (row === undefined) this.known.set(key, (row = this.list.push({ name, kind }) - 1));
    return -1 - row;
  }
}

export class Spans {
  count = 0;
  private start: Float64Array;
  end: Float64Array;
  private node: Int32Array;
  private event: Int32Array;

  constructor(room: number) {
    this.start = new Float64Array(room);
    this.end = new Float64Array(room);
    this.node = new Int32Array(room);
    this.event = new Int32Array(room);
  }

  /** Those there are, and room for more. */
  static from(
    old: { start: Float64Array; end: Float64Array; node: Int32Array; event: Int32Array },
    more: number,
  ): Spans {
    const made = new Spans(old.start.length + more);
    made.start.set(old.start);
    made.end.set(old.end);
    made.node.set(old.node);
    made.event.set(old.event);
    made.count = old.start.length;
    return made;
  }

  lastEnd(row: Int32Array | undefined): number {
    return row?.length ? this.end[row[row.length - 1]] : 0;
  }

  add(start: number, end: number, node: number, event: number): number {
    if (this.count === this.start.length) {
      const grown = <T extends Float64Array | Int32Array>(old: T, made: T): T => (made.set(old), made);
      const room = 2 * this.count + 16;
      this.start = grown(this.start, new Float64Array(room));
      this.end = grown(this.end, new Float64Array(room));
      this.node = grown(this.node, new Int32Array(room));
      this.event = grown(this.event, new Int32Array(room));
    }
    this.start[this.count] = start;
    this.end[this.count] = end;
    this.node[this.count] = node;
    this.event[this.count] = event;
    return this.count++;
  }

  columns(): { start: Float64Array; end: Float64Array; node: Int32Array; event: Int32Array } {
    return {
      start: this.start.subarray(0, this.count),
      end: this.end.subarray(0, this.count),
      node: this.node.subarray(0, this.count),
      event: this.event.subarray(0, this.count),
    };
  }
}

/** Numbers that are added one by one. */
export class Growing {
  length = 0;
  private values = new Int32Array(64);

  push(value: number): void {
    if (this.length === this.values.length) {
      const more = new Int32Array(2 * this.length);
      more.set(this.values);
      this.values = more;
    }
    this.values[this.length++] = value;
  }

  finished(): Int32Array {
    return this.values.slice(0, this.length);
  }
}
