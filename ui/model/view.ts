// Ways to look at the tree: top-down or bottom-up, by any metric, with library frames hidden, numbered layers folded,
// recursion collapsed. A view is lazy: children of a node are grouped when first asked for, so a view of any size costs what
// is drawn of it.

import { baseName, foldedName, operatorName, PRUNED } from "./frames";
import type { FrameRow, NodeRow, Profile } from "./profile";
import { processName } from "./timeline";
import { transformed, type Transform, type Transformed } from "./transforms";
import { below, bare } from "./names";
import { visible } from "./units";

export interface ViewOptions {
  metric: string;
  inverted: boolean;
  hideLibrary: boolean;
  foldLayers: boolean;
  joinProcesses: boolean;
  collapseRecursion: boolean;
  /** The largest first, or as they were first called. */
  order?: "size" | "time";
  transforms?: readonly Transform[];
}

export interface ViewNode {
  readonly parent: ViewNode | null;
  readonly depth: number;
  /** The rows whose values count, and where the view looks at them: the same top-down, their callers bottom-up. */
  readonly rows: NodeRow[];
  readonly at: NodeRow[];
  value: number;
  /** Group of its frame, see `Profile`; -1 at the root. */
  readonly group: number;
  children: ViewNode[] | null;
  /** Sum of the children before each, for search by position; made with `children`. */
  before: Float64Array | null;
  text: string | null;
  short: string | null;
}

export class TreeView {
  readonly total: number;
  readonly root: ViewNode;
  private readonly own: Float64Array;
  private readonly whole: Float64Array;
  private readonly done: Transformed | null;
  private readonly columns = new Map<string, { own: Float64Array; whole: Float64Array }>();
  private readonly groups: Int32Array | null;
  private readonly hiddenFrame: Uint8Array;

  constructor(
    readonly profile: Profile,
    readonly options: ViewOptions,
  ) {
    this.done = transformed(profile, options.transforms ?? []);
    const { own, whole } = this.values(options.metric);
    this.own = own;
    this.whole = whole;
    this.groups = options.foldLayers ? foldedFrames(profile) : null;
    this.hiddenFrame = hiddenFrames(profile, options);
    const rows: NodeRow[] = [];
    if (options.inverted)
      for (let row = 0; row < profile.size; row++) if (own[row] > 0 && this.shown(row)) rows.push(row);
    if (!options.inverted) rows.push(0);
    this.total = this.roots?.reduce((sum, row) => sum + whole[row], 0) ?? whole[0];
    this.root = made(null, -1, rows, rows);
    this.root.value = this.total;
  }

  private get roots(): NodeRow[] | null {
    return this.done?.roots ?? null;
  }

  private shown(row: NodeRow): boolean {
    return !this.done || this.done.inside[row] === 1;
  }

  private hidden(row: NodeRow): boolean {
    return this.hiddenFrame[this.profile.frame[row]] === 1 || this.done?.merged[row] === 1;
  }

  /** A metric without what is left out. */
  private values(metric: string): { own: Float64Array; whole: Float64Array } {
    const all = this.profile.metrics.values(metric);
    if (!this.done?.dropped.length) return all;
    let made = this.columns.get(metric);
    if (!made) {
      made = { own: all.own, whole: all.whole.slice() };
      for (const row of this.done.dropped)
        for (let at = row; at >= 0; at = this.profile.parent[at]) made.whole[at] -= all.whole[row];
      this.columns.set(metric, made);
    }
    return made;
  }

  children(node: ViewNode): ViewNode[] {
    if (!node.children) {
      node.children = this.options.inverted ? this.callers(node) : this.callees(node);
      const before = new Float64Array(node.children.length + 1);
      node.children.forEach((child, i) => (before[i + 1] = before[i] + child.value));
      node.before = before;
    }
    return node.children;
  }

  /** What stands in one box has one group: equal frames, but of processes only each alone. */
  private group(row: NodeRow): number {
    const frame = this.profile.frame[row];
    if (this.profile.kindOfFrame(frame) === "process") return -2 - row;
    return this.groups ? this.groups[frame] : frame;
  }

  private callees(node: ViewNode): ViewNode[] {
    const { childStart, childRows } = this.profile;
    const groups = new Map<number, ViewNode>();
    const collapse = this.options.collapseRecursion ? groupsAbove(node) : null;
    const stack = node.rows.length === 1 ? [node.rows[0]] : [...node.rows];
    const take = (child: NodeRow) => {
      if (!(this.whole[child] > 0) || !this.shown(child)) return;
      const group = this.group(child);
      if (this.hidden(child) || collapse?.has(group)) stack.push(child);
      else put(groups, node, group, child, child, this.whole[child]);
    };
    if (!node.parent && this.roots) {
      stack.length = 0;
      this.roots.forEach(take);
    }
    while (stack.length) {
      const row = stack.pop() as number;
      for (let i = childStart[row]; i < childStart[row + 1]; i++) take(childRows[i]);
    }
    return this.sorted(groups);
  }

  private callers(node: ViewNode): ViewNode[] {
    const { parent } = this.profile;
    const groups = new Map<number, ViewNode>();
    const collapse = this.options.collapseRecursion ? groupsAbove(node) : null;
    for (let i = 0; i < node.rows.length; i++) {
      const source = node.rows[i];
      let row = node.depth === 0 ? source : parent[node.at[i]];
      while (row > 0 && (this.hidden(row) || collapse?.has(this.group(row)))) row = parent[row];
      if (row > 0 && this.shown(row)) put(groups, node, this.group(row), source, row, this.own[source]);
    }
    return this.sorted(groups);
  }

  /** The largest first or as they were first called, except that what is drawn together comes last. */
  private sorted(groups: Map<number, ViewNode>): ViewNode[] {
    const nodes = [...groups.values()];
    const last = (node: ViewNode) => (this.profile.kind(node.at[0]) === PRUNED ? 1 : 0);
    if (this.options.order === "time") return nodes.sort((a, b) => last(a) - last(b) || firstOf(a) - firstOf(b));
    return nodes.sort((a, b) => last(a) - last(b) || b.value - a.value || a.at[0] - b.at[0]);
  }

  /** What the node spent itself; bottom-up, what the frame on top of this branch spent. */
  self(node: ViewNode): number {
    if (this.options.inverted) return node.value;
    return node.value - this.children(node).reduce((sum, child) => sum + child.value, 0);
  }

  /** Sum of another metric over the same call paths. */
  valueOf(node: ViewNode, metric: string): number {
    const { own, whole } = this.values(metric);
    const column = this.options.inverted ? own : whole;
    return node.rows.reduce((sum, row) => sum + column[row], 0);
  }

  frameOf(node: ViewNode): FrameRow {
    return this.profile.frame[node.at[0]];
  }

  kind(node: ViewNode): string {
    return node.parent ? this.profile.kind(node.at[0]) : "root";
  }

  library(node: ViewNode): boolean {
    return node.parent !== null && this.profile.library(this.frameOf(node));
  }

  label(node: ViewNode): string {
    return (node.text ??= visible(this.madeLabel(node)));
  }

  /** The label without what the boxes above say already: signatures, common namespaces, the module's own prefix. */
  shortLabel(node: ViewNode): string {
    return (node.short ??= visible(this.madeShort(node)));
  }

  private madeShort(node: ViewNode): string {
    const label = this.madeLabel(node);
    if (this.kind(node) !== "module" || this.options.inverted) return bare(label);
    let above = node.parent;
    while (above && this.kind(above) !== "module") above = above.parent;
    return above ? below(label, this.madeLabel(above).split(" ", 1)[0]) : label;
  }

  /** The kind whose colour it has: backward is told from the other phases. */
  shade(node: ViewNode): string {
    const kind = this.kind(node);
    return kind === "phase" && this.profile.frameText("name", this.frameOf(node)) === "backward" ? "backward" : kind;
  }

  private madeLabel(node: ViewNode): string {
    if (!node.parent) return this.options.inverted ? "all (bottom-up)" : "all";
    const frame = this.frameOf(node);
    const name = this.profile.frameText("name", frame);
    const names = this.profile.tables.frames.name;
    const several = this.options.foldLayers && node.at.some((row) => names[this.profile.frame[row]] !== names[frame]);
    const label = frameLabel(this.profile, frame, several ? foldedName(name) : name);
    const { node: nodes } = this.profile.tables.processes;
    const process = nodes.length > 1 ? nodes.indexOf(node.at[0]) : -1;
    return process >= 0 ? `${processName(this.profile, process)}: ${label}` : label;
  }

  /** The node of this view that stands for `row` of the tree, or its nearest ancestor in sight. Top-down only. */
  find(row: NodeRow): ViewNode {
    const wanted = new Set(this.profile.path(row));
    let node = this.root;
    for (;;) {
      const next = this.children(node).find((child) => child.rows.some((one) => wanted.has(one)));
      if (!next) return node;
      node = next;
    }
  }
}

/** What a box says: with the class of a module, the place of Python code. */
export function frameLabel(profile: Profile, frame: FrameRow, name = profile.frameText("name", frame)): string {
  const kind = profile.kindOfFrame(frame);
  const module = profile.frameText("module", frame);
  const line = profile.line(frame);
  if (kind === "module" && module) return `${name} (${module})`;
  if (kind === "python" && line > 0) return `${name} · ${baseName(profile.frameText("file", frame))}:${line}`;
  if (kind === "process") return name.replace(/^\S*\//, ""); // the program's name without its folder
  return kind === "operator" ? operatorName(name) : name;
}

function made(parent: ViewNode | null, group: number, rows: NodeRow[], at: NodeRow[]): ViewNode {
  const depth = parent ? parent.depth + 1 : 0;
  return { parent, depth, rows, at, value: 0, group, children: null, before: null, text: null, short: null };
}

function put(
  groups: Map<number, ViewNode>,
  parent: ViewNode,
  group: number,
  row: NodeRow,
  at: NodeRow,
  value: number,
): void {
  let node = groups.get(group);
  if (!node) groups.set(group, (node = made(parent, group, [], [])));
  node.rows.push(row);
  if (node.at !== node.rows) node.at.push(at);
  node.value += value;
}

/** Rows are numbered as they were first called. */
const firstOf = (node: ViewNode) => node.at.reduce((a, b) => Math.min(a, b));

function groupsAbove(node: ViewNode): Set<number> {
  const groups = new Set<number>();
  for (let at: ViewNode | null = node; at; at = at.parent) groups.add(at.group);
  return groups;
}

const foldings = new WeakMap<Profile, Int32Array>();

/** For every frame the number of its group when layer numbers are folded: h.0, h.1, ... of one class are one group. */
export function foldedFrames(profile: Profile): Int32Array {
  const known = foldings.get(profile);
  if (known) return known;
  const { kind, name, file, line, module } = profile.tables.frames;
  const folded = new Map<number, string>();
  const groups = new Map<string, number>();
  const made = new Int32Array(kind.length);
  for (let i = 0; i < kind.length; i++) {
    let short = folded.get(name[i]);
    if (short === undefined) folded.set(name[i], (short = foldedName(profile.text(name[i]))));
    const key = `${kind[i]} ${file[i]} ${line[i]} ${module[i]} ${short}`;
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = groups.size));
    made[i] = group;
  }
  foldings.set(profile, made);
  return made;
}

function hiddenFrames(profile: Profile, options: ViewOptions): Uint8Array {
  const made = new Uint8Array(profile.tables.frames.kind.length);
  for (let frame = 0; frame < made.length; frame++) {
    const kind = profile.kindOfFrame(frame);
    if (options.hideLibrary && profile.library(frame)) made[frame] = 1;
    if (options.joinProcesses && (kind === "process" || kind === "thread")) made[frame] = 1;
  }
  return made;
}
