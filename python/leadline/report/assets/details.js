// The panel beside the flame graph: what the selected frame is, where it stands in the source, and what it cost.

class Details {
  // page: {data, profile, shortFile(file), metricName(name), open(node), callers(node), spenders()}
  constructor(page) {
    this.page = page;
    this.element = el("aside", { class: "details", "aria-live": "polite" });
  }

  // Before anything is selected: which frames spent it, wherever they stand.
  overview(view) {
    const metric = this.page.profile.metric(view.options.metric);
    const entry = (node) =>
      el(
        "button",
        { class: "frame-link", type: "button", onclick: () => this.page.callers(node) },
        el("span", { class: `dot ${node.view.kind(node)}` }),
        el("span", { class: "grow" }, node.view.label(node)),
        el("span", { class: "number" }, share(node.value, view.total)),
      );
    replaceChildren(
      this.element,
      el("h3", {}, `${inUnit(view.total, metric?.unit ?? "1")} ${this.page.metricName(view.options.metric)}`),
      el(
        "p",
        { class: "quiet small" },
        "Click a box for its source line and its cost; double-click or Enter zooms in.",
      ),
      el("h4", {}, "Spent in, wherever they were called (click for callers)"),
      el("div", { class: "frame-list" }, this.page.spenders().map(entry)),
    );
  }

  show(view, node) {
    const { profile } = this.page;
    const frames = profile.frames;
    const frame = view.frameOf(node);
    const kind = view.kind(node);
    replaceChildren(
      this.element,
      el(
        "div",
        { class: "details-head" },
        kindChip(kind),
        view.library(node) ? el("span", { class: "chip" }, "library") : null,
      ),
      el("h3", {}, view.label(node)),
      node.parent && frames.file[frame] ? this.source(frames.file[frame], frames.line[frame]) : null,
      node.parent ? originOf(this.page, this.detailsAbove(view, node)) : null,
      this.costs(view, node),
      this.around(view, node),
    );
  }

  // Of the frame and the frames above it in the profile, whichever way the view looks at them.
  detailsAbove(view, node) {
    const { frames, frame } = this.page.profile;
    const path = this.page.profile.path(node.at[0]);
    return path.reverse().map((row) => detailOf(frames.detail[frame[row]]));
  }

  source(file, line) {
    const where = line > 0 ? `${file}:${line}` : file;
    const shown = line > 0 ? `${this.page.shortFile(file)}:${line}` : this.page.shortFile(file);
    return el("div", { class: "source", title: where }, el("code", {}, shown), copyButton(where, "file and line"));
  }

  costs(view, node) {
    const rows = this.page.profile.metrics.map((metric) => {
      const whole = view.valueOf(node, metric.name);
      if (!whole && metric.name !== view.options.metric) return null;
      const total = this.page.profile.column(metric.name).whole[0];
      const current = metric.name === view.options.metric;
      return el(
        "tr",
        { class: current ? "current" : "" },
        el("th", { scope: "row", title: metric.doc }, this.page.metricName(metric.name)),
        el("td", {}, inUnit(whole, metric.unit)),
        el("td", {}, share(whole, total)),
      );
    });
    const metric = this.page.profile.metric(view.options.metric);
    const self = view.options.inverted ? null : view.self(node);
    return el(
      "table",
      { class: "costs" },
      el(
        "tbody",
        {},
        rows,
        self === null || !metric
          ? null
          : el(
              "tr",
              {},
              el("th", { scope: "row" }, "of it in the frame itself"),
              el("td", {}, inUnit(self, metric.unit)),
              el("td", {}, share(self, node.value)),
            ),
      ),
    );
  }

  around(view, node) {
    const unit = this.page.profile.metric(view.options.metric)?.unit ?? "1";
    const children = view.children(node).slice(0, 8);
    const above = [];
    for (let at = node.parent; at?.parent; at = at.parent) above.push(at);
    const entry = (one) =>
      el(
        "button",
        { class: "frame-link", type: "button", onclick: () => this.page.open(one) },
        el("span", { class: `dot ${view.kind(one)}` }),
        el("span", { class: "grow" }, view.label(one)),
        el("span", { class: "number" }, inUnit(one.value, unit)),
      );
    const titles = view.options.inverted ? ["Called from", "On top of it"] : ["Below it", "Called from"];
    return [
      children.length ? [el("h4", {}, titles[0]), el("div", { class: "frame-list" }, children.map(entry))] : null,
      above.length
        ? [el("h4", {}, titles[1]), el("div", { class: "frame-list" }, above.slice(0, 30).map(entry))]
        : null,
    ];
  }
}

function kindChip(kind) {
  return el("span", { class: "chip kind" }, el("span", { class: `dot ${kind}` }), kind);
}
