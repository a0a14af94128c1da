// The flame graph page: its controls, what is zoomed and searched for, and the panel with details.

class FlamePage {
  // shared: {data, profile, shortFile, metricName}
  constructor(shared) {
    this.shared = shared;
    const metrics = shared.profile.metrics.map((metric) => metric.name);
    const main = ["gpu_time", "time"].find((name) => metrics.includes(name)) ?? metrics[0] ?? "time";
    const wanted = shared.data.report.path_metric;
    this.options = {
      metric: metrics.includes(wanted) ? wanted : main,
      inverted: false,
      hideLibrary: hasOwnCode(shared.profile),
      foldLayers: true,
      joinProcesses: shared.data.report.meta.processes > 1,
    };
    this.graph = new FlameGraph({
      select: (node) => this.details.show(this.view, node),
      zoom: (node) => this.zoom(node),
      tip: (node) => this.tip(node),
    });
    this.details = new Details({
      ...shared,
      open: (node) => this.open(node),
      callers: (node) => this.callers(node),
      spenders: () => this.spenders(),
    });
    this.views = new Map();
    this.build(metrics);
    this.refresh();
  }

  build(metrics) {
    this.metricSelect = el(
      "select",
      {
        "aria-label": "Width of the boxes",
        title: "Width of the boxes (m)",
        onchange: () => this.set({ metric: this.metricSelect.value }),
      },
      metrics.map((name) => el("option", { value: name }, this.shared.metricName(name))),
    );
    this.searchBox = el("input", {
      type: "search",
      placeholder: "Search name or file (/)",
      "aria-label": "Search frames",
      spellcheck: "false",
      oninput: () => this.search(),
    });
    this.searchBox.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.nextFound(event.shiftKey ? -1 : 1);
      }
    });
    this.found = el("span", { class: "quiet found", role: "status" });
    this.toggles = {
      inverted: toggle("Bottom-up", "Turn the tree over: at the top what spent it, below its callers (i)", () =>
        this.flip("inverted"),
      ),
      hideLibrary: toggle("Hide libraries", "Leave out Python frames of the standard library and of packages (h)", () =>
        this.flip("hideLibrary"),
      ),
      foldLayers: toggle("Fold layers", "Show numbered layers (h.0, h.1, ...) as one (l)", () =>
        this.flip("foldLayers"),
      ),
      joinProcesses: toggle("Join processes", "Show the same call path of all processes and threads as one (p)", () =>
        this.flip("joinProcesses"),
      ),
    };
    this.crumbs = el("nav", { class: "crumbs", "aria-label": "Zoomed path" });
    this.legend = el("div", { class: "legend" });
    this.element = el(
      "section",
      { class: "page flame-page" },
      el(
        "div",
        { class: "toolbar" },
        this.metricSelect,
        Object.values(this.toggles),
        el("span", { class: "grow" }),
        this.found,
        this.searchBox,
      ),
      this.crumbs,
      el(
        "div",
        { class: "flame-main" },
        el("div", { class: "flame-left" }, this.graph.element, this.legend),
        this.details.element,
      ),
    );
  }

  flip(name) {
    this.set({ [name]: !this.options[name] });
  }

  set(options) {
    Object.assign(this.options, options);
    this.refresh();
  }

  refresh() {
    this.view = this.viewOf(this.options);
    this.metricSelect.value = this.options.metric;
    for (const [name, button] of Object.entries(this.toggles))
      button.setAttribute("aria-pressed", String(this.options[name]));
    this.graph.show(this.view);
    this.details.overview(this.view);
    this.drawCrumbs();
    this.drawLegend();
    this.search();
  }

  viewOf(options) {
    const key = JSON.stringify(options);
    if (!this.views.has(key)) this.views.set(key, new TreeView(this.shared.profile, { ...options }));
    return this.views.get(key);
  }

  // The most expensive frames on their own, and from each of them to its callers.
  spenders() {
    const view = this.viewOf({ ...this.options, inverted: true });
    return view.children(view.root).slice(0, 14);
  }

  callers(node) {
    this.set({ inverted: true });
    this.zoom(node);
  }

  nextMetric() {
    const names = this.shared.profile.metrics.map((metric) => metric.name);
    if (names.length) this.set({ metric: names[(names.indexOf(this.options.metric) + 1) % names.length] });
  }

  zoom(node) {
    this.graph.zoom(node);
    this.graph.select(node);
    this.details.show(this.view, node);
    this.drawCrumbs();
  }

  // Select a frame chosen elsewhere; zoom out as far as it takes to see it.
  open(node) {
    let zoomed = this.graph.zoomed;
    while (zoomed.parent && !isAbove(zoomed, node)) zoomed = zoomed.parent;
    if (zoomed !== this.graph.zoomed) {
      this.graph.zoom(zoomed);
      this.drawCrumbs();
    }
    this.graph.select(node);
    this.details.show(this.view, node);
  }

  // Show a row of the tree, by a metric: what a hot path or a holder of memory points at.
  focus(row, metric) {
    this.searchBox.value = "";
    this.set({ metric: this.shared.profile.metric(metric) ? metric : this.options.metric, inverted: false });
    this.zoom(this.view.find(row));
  }

  searchFor(text) {
    this.searchBox.value = text;
    this.zoom(this.view.root);
    this.search();
  }

  // Escape: first the search, then the zoom.
  back() {
    if (this.searchBox.value) {
      this.searchBox.value = "";
      this.search();
    } else this.zoom(this.view.root);
  }

  search() {
    const text = this.searchBox.value.trim().toLowerCase();
    if (!text) {
      this.hits = null;
      this.graph.search(null);
      this.found.textContent = "";
      return;
    }
    const { frames } = this.shared.profile;
    this.hits = frames.name.map((name, i) =>
      `${name} ${foldedName(name)} ${frames.module[i]} ${frames.file[i]}:${frames.line[i]}`
        .toLowerCase()
        .includes(text),
    );
    this.graph.search((node) => this.hits[this.view.frameOf(node)]);
    const { sum, count } = foundSum(this.shared.profile, this.options.metric, this.hits);
    this.found.textContent = count
      ? `${share(sum, this.view.total)} in ${number(count)} place${count === 1 ? "" : "s"}`
      : "nothing found";
  }

  // Go through what was found, in the order of the boxes drawn.
  nextFound(step) {
    if (!this.hits) return;
    const nodes = this.graph.boxes
      .filter((box) => box.node.parent && this.hits[this.view.frameOf(box.node)])
      .sort((a, b) => a.x - b.x || a.row - b.row)
      .map((box) => box.node);
    if (!nodes.length) return;
    const at = nodes.indexOf(this.graph.selected);
    this.open(nodes[(at + step + nodes.length) % nodes.length]);
  }

  tip(node) {
    const metric = this.shared.profile.metric(this.options.metric);
    const frame = this.view.frameOf(node);
    const { file, line } = this.shared.profile.frames;
    const where =
      node.parent && file[frame]
        ? `${this.shared.shortFile(file[frame])}${line[frame] > 0 ? `:${line[frame]}` : ""}`
        : "";
    return [
      el("b", {}, this.view.label(node)),
      where ? el("div", { class: "quiet" }, where) : null,
      el("div", {}, `${inUnit(node.value, metric?.unit ?? "1")}, ${share(node.value, this.view.total)}`),
    ];
  }

  drawCrumbs() {
    const nodes = [];
    for (let node = this.graph.zoomed; node; node = node.parent) nodes.push(node);
    const shown = nodes.length > 7 ? [...nodes.slice(0, 5), null, nodes[nodes.length - 1]] : nodes;
    replaceChildren(
      this.crumbs,
      shown
        .reverse()
        .map((node, i) => [
          i ? el("span", { class: "quiet" }, "›") : null,
          node
            ? el("button", { type: "button", onclick: () => this.zoom(node) }, this.view.label(node))
            : el("span", { class: "quiet" }, "…"),
        ]),
    );
    this.crumbs.hidden = nodes.length === 1;
  }

  drawLegend() {
    const { profile } = this.shared;
    const used = new Set(profile.frame.map((frame) => profile.frames.kind[frame]));
    const kinds = profile.kinds.filter(
      (kind, i) => used.has(i) && !["root", "process", "thread", "pruned"].includes(kind),
    );
    const { nodes, share: limit } = profile.pruned;
    replaceChildren(
      this.legend,
      kinds.map((kind) => el("span", {}, el("span", { class: `dot ${kind}` }), kind)),
      nodes
        ? el(
            "span",
            { class: "quiet" },
            `${number(nodes)} paths below ${(100 * limit).toPrecision(2)}% are drawn together`,
          )
        : null,
    );
  }
}

// Whether there is any Python frame outside libraries: only then can the others be left out.
function hasOwnCode(profile) {
  const python = profile.kinds.indexOf("python");
  return profile.frames.kind.some((kind, i) => kind === python && !profile.frames.library[i]);
}

function toggle(label, title, onclick) {
  return el("button", { class: "toggle", type: "button", title, "aria-pressed": "false", onclick }, label);
}

function isAbove(node, other) {
  for (let at = other; at; at = at.parent) if (at === node) return true;
  return false;
}

// What frames that were found have with everything below them, each part of the tree counted once.
function foundSum(profile, metric, hits) {
  const { whole } = profile.column(metric);
  const stack = [0];
  let sum = 0;
  let count = 0;
  while (stack.length) {
    const row = stack.pop();
    if (row && hits[profile.frame[row]] && whole[row] > 0) {
      sum += whole[row];
      count += 1;
    } else {
      stack.push(...profile.children[row]);
    }
  }
  return { sum, count };
}
