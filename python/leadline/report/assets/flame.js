// The flame graph itself: rectangles on a canvas as large as what is seen, whatever the depth of the tree.
// It knows a view (views.js), which node is zoomed, selected or found, and reports what the user does; it has no controls.

const ROW = 21;
const SMALLEST = 0.7; // CSS pixels: narrower boxes are neither laid out nor opened
const TEXT_FROM = 26;

class FlameGraph {
  // on: {select(node), zoom(node)}
  constructor(on) {
    this.on = on;
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "img",
      "aria-label": "Flame graph; arrow keys move, Enter zooms, Escape zooms out",
    });
    this.spacer = el("div", { class: "flame-spacer" }, this.canvas);
    this.element = el("div", { class: "flame-scroll" }, this.spacer);
    this.tip = el("div", { class: "tip", hidden: true });
    this.element.append(this.tip);
    this.boxes = [];
    this.found = null;
    this.selected = null;
    this.element.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.hoverBox(null));
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("dblclick", (event) => {
      const box = this.boxAt(event);
      if (box) this.on.zoom(box.node);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.layout()).observe(this.element);
  }

  show(view, zoomed) {
    this.view = view;
    this.zoomed = zoomed ?? view.root;
    this.selected = null;
    this.hoverBox(null);
    this.layout();
    this.element.scrollTop = 0;
  }

  zoom(node) {
    this.zoomed = node;
    this.layout();
    this.reveal(node);
  }

  select(node) {
    this.selected = node;
    if (node) this.reveal(node);
    this.draw();
  }

  // found: (node) -> boolean, or null when nothing is searched for.
  search(found) {
    this.found = found;
    this.draw();
  }

  // Boxes {node, x, width, row} in CSS pixels: ancestors of the zoomed node over the full width, then what is below it.
  layout() {
    const width = this.element.clientWidth;
    if (!this.view || !width) return;
    const boxes = [];
    for (let node = this.zoomed.parent; node; node = node.parent)
      boxes.push({ node, x: 0, width, row: node.depth, context: true });
    let deepest = this.zoomed.depth;
    const stack = [{ node: this.zoomed, x: 0, width, row: this.zoomed.depth }];
    while (stack.length) {
      const box = stack.pop();
      boxes.push(box);
      deepest = Math.max(deepest, box.row);
      const whole = box.node.value;
      let x = box.x;
      for (const child of whole > 0 ? this.view.children(box.node) : []) {
        const part = (box.width * child.value) / whole;
        if (part >= SMALLEST) stack.push({ node: child, x, width: part, row: box.row + 1 });
        x += part;
      }
    }
    this.boxes = boxes;
    this.rows = new Map();
    for (const box of boxes) {
      if (!this.rows.has(box.row)) this.rows.set(box.row, []);
      this.rows.get(box.row).push(box);
    }
    this.spacer.style.height = `${(deepest + 1) * ROW}px`;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (!this.view || !width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.colours = colours();
    const top = this.element.scrollTop;
    const last = Math.ceil((top + height) / ROW);
    for (let row = Math.floor(top / ROW); row <= last; row++) {
      for (const box of this.rows.get(row) ?? []) this.drawBox(context, box, row * ROW - top);
    }
  }

  drawBox(context, box, y) {
    const { node } = box;
    const kind = this.view.kind(node);
    const hit = this.found && node.parent && this.found(node);
    const dim = (this.found && !hit) || box.context;
    const gap = box.width > 3 ? 1 : 0;
    context.globalAlpha = dim ? 0.32 : this.view.library(node) ? 0.62 : 1;
    context.fillStyle = hit ? this.colours.found : (this.colours[kind] ?? this.colours.native);
    context.fillRect(box.x, y, box.width - gap, ROW - 1);
    context.globalAlpha = dim ? 0.75 : 1;
    if (box.width > TEXT_FROM) {
      context.fillStyle = dim && !box.context ? this.colours.muted : this.colours.ink;
      const text = fitted(context, this.view.label(node), box.width - 9);
      context.fillText(text, box.x + 4, y + ROW / 2);
    }
    context.globalAlpha = 1;
    if (node === this.selected || node === this.hovered) {
      context.strokeStyle = this.colours.outline;
      context.lineWidth = node === this.selected ? 2 : 1;
      context.strokeRect(box.x + 1, y + 1, Math.max(box.width - gap - 2, 1), ROW - 3);
    }
  }

  boxAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const row = Math.floor((event.clientY - bounds.top + this.element.scrollTop) / ROW);
    return (this.rows?.get(row) ?? []).find((box) => x >= box.x && x < box.x + box.width);
  }

  hover(event) {
    const box = this.boxAt(event);
    this.hoverBox(box?.node ?? null);
    if (!box) return;
    replaceChildren(this.tip, ...this.on.tip(box.node));
    const bounds = this.element.getBoundingClientRect();
    const left = Math.min(event.clientX - bounds.left + 14, bounds.width - this.tip.offsetWidth - 8);
    const below = event.clientY - bounds.top + 18;
    const fits = below + this.tip.offsetHeight < bounds.height;
    this.tip.style.left = `${Math.max(left, 4)}px`;
    this.tip.style.top = `${this.element.scrollTop + (fits ? below : below - this.tip.offsetHeight - 30)}px`;
  }

  hoverBox(node) {
    this.canvas.style.cursor = node ? "pointer" : "default";
    this.tip.hidden = !node;
    if (node !== this.hovered) {
      this.hovered = node;
      this.draw();
    }
  }

  click(event) {
    this.canvas.focus();
    const box = this.boxAt(event);
    if (!box) return;
    this.select(box.node);
    this.on.select(box.node);
    if (box.context) this.on.zoom(box.node);
  }

  key(event) {
    const next = { ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right" }[event.key];
    if (next) {
      const node = this.neighbour(next);
      if (node) {
        this.select(node);
        this.on.select(node);
      }
    } else if (event.key === "Enter") {
      if (this.selected) this.on.zoom(this.selected);
    } else {
      return;
    }
    event.preventDefault();
  }

  neighbour(direction) {
    const node = this.selected ?? this.zoomed;
    if (!this.selected) return node;
    if (direction === "up") return node.parent;
    if (direction === "down") return this.view.children(node)[0];
    if (!node.parent) return null;
    const siblings = this.view.children(node.parent);
    return siblings[siblings.indexOf(node) + (direction === "left" ? -1 : 1)];
  }

  // Scroll so that the node's row can be seen.
  reveal(node) {
    const y = node.depth * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop || y + ROW > scrollTop + clientHeight) this.element.scrollTop = Math.max(0, y - clientHeight / 3);
  }
}

// The colours of the current theme, from the style sheet, by frame kind.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const kinds = [
    "root",
    "process",
    "thread",
    "python",
    "module",
    "operator",
    "native",
    "api",
    "kernel",
    "copy",
    "collective",
    "instruction",
    "region",
    "phase",
    "pruned",
  ];
  const made = Object.fromEntries(kinds.map((kind) => [kind, read(`--kind-${kind}`)]));
  return { ...made, ink: read("--flame-ink"), muted: read("--muted"), outline: read("--text"), found: read("--found") };
}

// `text` cut with an ellipsis to what fits in `width`; empty when not even two letters would.
function fitted(context, text, width) {
  const shown = text.length > 200 ? text.slice(0, 200) : text;
  if (context.measureText(shown).width <= width) return shown;
  let low = 0;
  let high = shown.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(shown.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : shown.slice(0, low) + "…";
}
