// Ways to look at the tree: top-down or bottom-up, by any metric, with library frames hidden or numbered layers folded.
// A view is lazy: children of a node are grouped when first asked for, so a view of any size costs what is drawn of it.

class Profile {
  constructor(flame) {
    this.kinds = flame.kinds;
    this.frames = flame.frames;
    this.parent = flame.parent;
    this.frame = flame.frame;
    this.metrics = flame.metrics;
    this.pruned = flame.pruned;
    this.children = flame.parent.map(() => []);
    flame.parent.forEach((parent, row) => {
      if (parent >= 0) this.children[parent].push(row);
    });
    this.order = this.parentsFirst();
    this.columns = new Map();
    this.folded = foldedFrames(flame.frames);
  }

  parentsFirst() {
    const order = [0];
    for (let i = 0; i < order.length; i++) for (const child of this.children[order[i]]) order.push(child);
    return order;
  }

  metric(name) {
    return this.metrics.find((metric) => metric.name === name);
  }

  // {own, whole}: exclusive and inclusive values of every row.
  column(name) {
    let column = this.columns.get(name);
    if (!column) {
      const own = new Float64Array(this.parent.length);
      const metric = this.metric(name);
      metric?.rows.forEach((row, i) => {
        own[row] = metric.values[i];
      });
      const whole = Float64Array.from(own);
      for (let i = this.order.length - 1; i > 0; i--) whole[this.parent[this.order[i]]] += whole[this.order[i]];
      column = { own, whole };
      this.columns.set(name, column);
    }
    return column;
  }

  kind(row) {
    return this.kinds[this.frames.kind[this.frame[row]]];
  }

  path(row) {
    const rows = [];
    for (let at = row; at >= 0; at = this.parent[at]) rows.push(at);
    return rows.reverse();
  }
}

// For every frame the number of its group when layer numbers are folded: h.0, h.1, ... of one class are one group.
function foldedFrames(frames) {
  const groups = new Map();
  return frames.name.map((name, i) => {
    const key = JSON.stringify([frames.kind[i], foldedName(name), frames.file[i], frames.line[i], frames.module[i]]);
    if (!groups.has(key)) groups.set(key, groups.size);
    return groups.get(key);
  });
}

function foldedName(name) {
  return name.replace(/(^|\.)\d+(?=\.|$)/g, "$1*");
}

function baseName(file) {
  return file.slice(file.lastIndexOf("/") + 1);
}

// Without the name of autograd's engine, which says nothing that the phase does not.
function operatorName(name) {
  return name.replace(/^autograd::engine::evaluate_function: /, "");
}

class TreeView {
  // options: {metric, inverted, hideLibrary, foldLayers, joinProcesses}
  constructor(profile, options) {
    this.profile = profile;
    this.options = options;
    const { own, whole } = profile.column(options.metric);
    this.own = own;
    this.whole = whole;
    this.total = whole[0];
    const rows = options.inverted ? profile.order.filter((row) => own[row] > 0) : [0];
    this.root = { view: this, parent: null, depth: 0, rows, at: rows, value: this.total, kids: null };
  }

  hidden(row) {
    if (this.options.hideLibrary && this.profile.frames.library[this.profile.frame[row]] === 1) return true;
    return this.options.joinProcesses && ["process", "thread"].includes(this.profile.kind(row));
  }

  group(row) {
    const frame = this.profile.frame[row];
    return this.options.foldLayers ? this.profile.folded[frame] : frame;
  }

  // Children, the largest first, except that the pruned rest comes last.
  children(node) {
    if (!node.kids) node.kids = this.options.inverted ? this.callers(node) : this.callees(node);
    return node.kids;
  }

  callees(node) {
    const groups = new Map();
    const stack = [...node.rows];
    while (stack.length) {
      for (const row of this.profile.children[stack.pop()]) {
        if (this.whole[row] <= 0) continue;
        if (this.hidden(row)) {
          stack.push(row);
          continue;
        }
        this.put(groups, node, this.group(row), row, row, this.whole[row]);
      }
    }
    return this.sorted(groups);
  }

  callers(node) {
    const groups = new Map();
    node.rows.forEach((source, i) => {
      let row = node.depth === 0 ? source : this.profile.parent[node.at[i]];
      while (row > 0 && this.hidden(row)) row = this.profile.parent[row];
      if (row > 0) this.put(groups, node, this.group(row), source, row, this.own[source]);
    });
    return this.sorted(groups);
  }

  put(groups, parent, key, row, at, value) {
    let node = groups.get(key);
    if (!node) {
      node = { view: this, parent, depth: parent.depth + 1, rows: [], at: [], value: 0, kids: null };
      groups.set(key, node);
    }
    node.rows.push(row);
    node.at.push(at);
    node.value += value;
  }

  sorted(groups) {
    const last = (node) => this.profile.kind(node.at[0]) === "pruned";
    return [...groups.values()].sort((a, b) => last(a) - last(b) || b.value - a.value);
  }

  // What the node spent itself; bottom-up, what the frame on top of this branch spent.
  self(node) {
    if (this.options.inverted) return node.value;
    return node.value - this.children(node).reduce((sum, child) => sum + child.value, 0);
  }

  // Sums of another metric over the same call paths.
  valueOf(node, metric) {
    const { own, whole } = this.profile.column(metric);
    const column = this.options.inverted ? own : whole;
    return node.rows.reduce((sum, row) => sum + column[row], 0);
  }

  frameOf(node) {
    return this.profile.frame[node.at[0]];
  }

  kind(node) {
    return node.parent ? this.profile.kind(node.at[0]) : "root";
  }

  library(node) {
    return node.parent !== null && this.profile.frames.library[this.frameOf(node)] === 1;
  }

  label(node) {
    node.text ??= visible(this.makeLabel(node));
    return node.text;
  }

  makeLabel(node) {
    if (!node.parent) return this.options.inverted ? "all (bottom-up)" : "all";
    const frames = this.profile.frames;
    const frame = this.frameOf(node);
    const several =
      this.options.foldLayers && node.at.some((row) => frames.name[this.profile.frame[row]] !== frames.name[frame]);
    const name = several ? foldedName(frames.name[frame]) : frames.name[frame];
    const kind = this.kind(node);
    if (kind === "module" && frames.module[frame]) return `${name} (${frames.module[frame]})`;
    if (kind === "python" && frames.line[frame] > 0)
      return `${name} · ${baseName(frames.file[frame])}:${frames.line[frame]}`;
    if (kind === "process") return name.replace(/^\S*\//, ""); // the program's name without its folder
    return kind === "operator" ? operatorName(name) : name;
  }

  // The node of this view that stands for `row` of the tree, or its nearest ancestor in sight. Top-down only.
  find(row) {
    const wanted = new Set(this.profile.path(row));
    let node = this.root;
    for (;;) {
      const next = this.children(node).find((child) => child.rows.some((one) => wanted.has(one)));
      if (!next) return node;
      node = next;
    }
  }
}
