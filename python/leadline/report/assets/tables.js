// A table that sorts by a click on its heads and narrows with a filter; the operator and module pages.

class SortTable {
  // columns: {title, help, value(row) -> number | string, cell(row) -> node or text, text: bool, left: bool}
  constructor(columns, rows, { sort, onrow, rowTitle } = {}) {
    this.columns = columns;
    this.rows = rows;
    this.sort = sort ?? 0;
    this.descending = !columns[this.sort].text;
    this.onrow = onrow;
    this.rowTitle = rowTitle;
    this.filter = "";
    this.body = el("tbody");
    this.heads = columns.map((column, i) =>
      el(
        "th",
        { scope: "col", class: column.text || column.left ? "text" : "" },
        el("button", { type: "button", title: column.help, onclick: () => this.sortBy(i) }, column.title),
      ),
    );
    this.element = el(
      "div",
      { class: "table-wrap" },
      el("table", { class: "data" }, el("thead", {}, el("tr", {}, this.heads)), this.body),
    );
    this.draw();
  }

  sortBy(i) {
    this.descending = i === this.sort ? !this.descending : !this.columns[i].text;
    this.sort = i;
    this.draw();
  }

  narrow(text) {
    this.filter = text.toLowerCase();
    this.draw();
  }

  draw() {
    this.heads.forEach((head, i) => {
      head.setAttribute("aria-sort", i !== this.sort ? "none" : this.descending ? "descending" : "ascending");
    });
    const value = this.columns[this.sort].value;
    const named = this.columns.filter((column) => column.text);
    const shown = this.rows.filter(
      (row) => !this.filter || named.some((column) => String(column.value(row)).toLowerCase().includes(this.filter)),
    );
    shown.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return this.descending ? -order : order;
    });
    const lines = shown.map((row) => {
      const open = this.onrow ? () => this.onrow(row) : undefined;
      const line = el(
        "tr",
        { class: open ? "link" : "", tabindex: open ? "0" : undefined, title: this.rowTitle, onclick: open },
        this.columns.map((column) =>
          el("td", { class: column.text || column.left ? "text" : "" }, (column.cell ?? column.value)(row)),
        ),
      );
      if (open)
        line.addEventListener("keydown", (event) => {
          if (event.key === "Enter") open();
        });
      return line;
    });
    replaceChildren(
      this.body,
      lines.length
        ? lines
        : el(
            "tr",
            {},
            el("td", { class: "text quiet", colspan: String(this.columns.length) }, "Nothing here has that name."),
          ),
    );
  }
}

function filterBox(table, what) {
  return el("input", {
    type: "search",
    placeholder: `Filter ${what}`,
    "aria-label": `Filter ${what}`,
    spellcheck: "false",
    oninput: (event) => table.narrow(event.target.value),
  });
}

const timeColumn = (title, value, help) => ({ title, value, cell: (row) => duration(value(row)), help });

function operatorsPage(shared) {
  const { report } = shared.data;
  const total = report.totals.time?.sum ?? 0;
  const most = Math.max(...report.operators.map((row) => row.time_ns.self), 1);
  const columns = [
    { title: "Operator", value: (row) => row.name, text: true, cell: (row) => el("code", {}, row.name) },
    { title: "Calls", value: (row) => row.count, cell: (row) => number(row.count) },
    {
      title: "Self",
      value: (row) => row.time_ns.self,
      cell: (row) => duration(row.time_ns.self),
      help: "Wall time less what nested operators took",
    },
    {
      title: "",
      value: (row) => row.time_ns.self,
      cell: (row) => bar([[row.time_ns.self / most, "operator", share(row.time_ns.self, total)]]),
    },
    { title: "Share", value: (row) => row.time_ns.self, cell: (row) => share(row.time_ns.self, total) },
    timeColumn("Total", (row) => row.time_ns.sum, "Wall time with nested operators"),
    timeColumn("Mean", (row) => row.time_ns.mean),
    timeColumn("Min", (row) => row.time_ns.min),
    timeColumn("Max", (row) => row.time_ns.max),
    timeColumn("Std", (row) => row.time_ns.std, "Standard deviation of one call"),
  ];
  if (report.operators.some((row) => row.gpu_time_ns)) columns.push(timeColumn("GPU", (row) => row.gpu_time_ns));
  if (report.operators.some((row) => row.alloc_bytes))
    columns.push({ title: "Allocated", value: (row) => row.alloc_bytes, cell: (row) => size(row.alloc_bytes) });
  const sort = report.path_metric === "gpu_time" ? columns.findIndex((column) => column.title === "GPU") : 2;
  const table = new SortTable(columns, report.operators, {
    sort: Math.max(sort, 0),
    onrow: (row) => shared.search(row.name),
    rowTitle: "Find it in the flame graph",
  });
  return el(
    "section",
    { class: "page" },
    el(
      "div",
      { class: "toolbar" },
      el("h2", {}, "Operators"),
      el("span", { class: "quiet" }, hiddenNote(report.operators.length, report.hidden.operators)),
      el("span", { class: "grow" }),
      filterBox(table, "operators"),
    ),
    report.operators.length ? table.element : nothing("No operator was measured."),
  );
}

function modulesPage(shared) {
  const { report } = shared.data;
  const columns = [
    {
      title: "Module",
      value: (row) => row.name,
      text: true,
      cell: (row) => [
        el("code", {}, row.name),
        row.modules > 1 ? el("span", { class: "quiet" }, ` ${row.modules} modules`) : null,
      ],
    },
    { title: "Class", value: (row) => row.class_name, text: true },
    timeColumn("Total", (row) => row.time_ns, "With its submodules, forward and backward"),
    {
      title: "forward, backward",
      left: true,
      value: (row) => row.time_ns,
      cell: (row) => forwardBackward(row, report),
    },
    timeColumn("Forward", (row) => row.forward_ns),
    timeColumn("Backward", (row) => row.backward_ns, "Counted at the module whose forward it belongs to"),
    timeColumn("Self", (row) => row.self_ns, "Without its submodules"),
  ];
  if (report.modules.some((row) => row.gpu_time_ns)) columns.push(timeColumn("GPU", (row) => row.gpu_time_ns));
  if (report.modules.some((row) => row.alloc_bytes))
    columns.push({ title: "Allocated", value: (row) => row.alloc_bytes, cell: (row) => size(row.alloc_bytes) });
  const folded = foldedModules(report.modules);
  const table = new SortTable(columns, folded, {
    sort: 2,
    onrow: (row) => shared.search(row.name),
    rowTitle: "Find it in the flame graph",
  });
  const fold = toggle("Fold layers", "Show numbered layers (h.0, h.1, ...) as one", () => {
    const on = fold.getAttribute("aria-pressed") !== "true";
    fold.setAttribute("aria-pressed", String(on));
    table.rows = on ? folded : report.modules;
    table.draw();
  });
  fold.setAttribute("aria-pressed", "true");
  return el(
    "section",
    { class: "page" },
    el(
      "div",
      { class: "toolbar" },
      el("h2", {}, "Modules"),
      el("span", { class: "quiet" }, hiddenNote(report.modules.length, report.hidden.modules)),
      folded.length < report.modules.length ? fold : null,
      el("span", { class: "grow" }),
      filterBox(table, "modules"),
    ),
    report.modules.length ? table.element : nothing("No nn.Module was called while measuring."),
  );
}

function forwardBackward(row, report) {
  const most = Math.max(...report.modules.map((one) => one.time_ns), 1);
  return bar([
    [row.forward_ns / most, "module", `forward ${duration(row.forward_ns)}`],
    [row.backward_ns / most, "phase", `backward ${duration(row.backward_ns)}`],
  ]);
}

// Rows whose names differ only in layer numbers, added up. Modules of one pattern never hold each other, so nothing counts twice.
function foldedModules(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = JSON.stringify([foldedName(row.name), row.class_name]);
    const sum = groups.get(key);
    if (!sum) groups.set(key, { ...row });
    else {
      sum.name = foldedName(row.name);
      for (const name of ["modules", "time_ns", "self_ns", "forward_ns", "backward_ns", "gpu_time_ns", "alloc_bytes"])
        sum[name] += row[name];
    }
  }
  return [...groups.values()];
}

function hiddenNote(shown, hidden) {
  return hidden ? `${number(shown)} of ${number(shown + hidden)}; leadline report --top N shows more` : number(shown);
}

function nothing(sentence) {
  return el("p", { class: "quiet empty" }, sentence);
}
