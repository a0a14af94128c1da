// Puts the page together: header, tabs, keys, theme.

const KEYS = [
  ["1 – 6", "Overview, flame graph, operators, modules, memory, capture"],
  ["/", "search the flame graph; Enter goes through what was found"],
  ["i", "bottom-up or top-down"],
  ["h", "hide or show library frames"],
  ["l", "fold numbered layers"],
  ["p", "join processes and threads"],
  ["m", "next metric"],
  ["arrows", "move over the frames"],
  ["Enter, double-click", "zoom in"],
  ["Esc", "clear the search, then zoom out"],
  ["t", "light or dark"],
  ["?", "this list"],
];

const LOGO = "M12 2v11M12 13l3.4 4.2L12 22l-3.4-4.8z";

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const profile = new Profile(data.flame);
  const shared = {
    data,
    profile,
    shortFile: (file) => data.short_files[file] ?? file,
    metricName: (name) => data.metric_names[name] ?? name.replaceAll("_", " "),
    focus: (row, metric) => {
      open("flame");
      flame.focus(row, metric);
    },
    search: (text) => {
      open("flame");
      flame.searchFor(text);
    },
  };
  const flame = new FlamePage(shared);
  const pages = {
    overview: overviewPage(shared),
    flame: flame.element,
    operators: operatorsPage(shared),
    modules: modulesPage(shared),
    memory: memoryPage(shared),
    capture: capturePage(shared),
  };
  const titles = {
    overview: "Overview",
    flame: "Flame graph",
    operators: "Operators",
    modules: "Modules",
    memory: "Memory",
    capture: "Capture",
  };
  const tabs = Object.fromEntries(
    Object.entries(titles).map(([name, title]) => [
      name,
      el(
        "button",
        { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `page-${name}`, onclick: () => open(name) },
        title,
        name === "capture" && data.report.losses.length
          ? el("span", { class: "badge", title: "Something was not measured" }, "!")
          : null,
      ),
    ]),
  );
  for (const [name, page] of Object.entries(pages))
    Object.entries({ id: `page-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}` }).forEach(([key, value]) =>
      page.setAttribute(key, value),
    );

  function open(name) {
    for (const [key, page] of Object.entries(pages)) {
      page.hidden = key !== name;
      tabs[key].setAttribute("aria-selected", String(key === name));
    }
    if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
    if (name === "flame") flame.graph.layout();
  }

  const help = helpDialog();
  const { meta } = data.report;
  const facts = [
    meta.started_at.replace("T", " ").replace("Z", " UTC"),
    meta.wall_ns ? duration(meta.wall_ns) : "",
    meta.python && `Python ${meta.python}`,
    ...meta.frameworks,
    meta.host,
  ].filter(Boolean);
  append(document.getElementById("app"), [
    el(
      "header",
      { class: "top" },
      logo(),
      el(
        "div",
        { class: "program" },
        el("h1", { title: meta.program }, meta.program),
        el("div", { class: "quiet small" }, facts.join(" · ")),
      ),
      el("nav", { class: "tabs", role: "tablist" }, Object.values(tabs)),
      el(
        "div",
        { class: "tools" },
        el(
          "button",
          { type: "button", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: theme },
          "◐",
        ),
        el("button", { type: "button", title: "Keys (?)", "aria-label": "Keys", onclick: () => help.showModal() }, "?"),
      ),
    ),
    meta.complete
      ? null
      : el("div", { class: "banner" }, "The run did not end in order: this is what its last segments hold."),
    el("main", {}, Object.values(pages)),
    help,
  ]);
  const names = Object.keys(pages);
  const asked = () => {
    const name = location.hash.slice(1);
    return names.includes(name) ? name : "overview";
  };
  open(asked());
  window.addEventListener("hashchange", () => open(asked()));

  function theme() {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--theme").trim() === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    flame.graph.draw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => flame.graph.draw());

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape" && !pages.flame.hidden) {
      flame.back();
      if (typing) event.target.blur();
      return;
    }
    if (typing) return;
    const number = Number(event.key);
    const act = {
      i: () => flame.flip("inverted"),
      h: () => flame.flip("hideLibrary"),
      l: () => flame.flip("foldLayers"),
      p: () => flame.flip("joinProcesses"),
      m: () => flame.nextMetric(),
    }[event.key];
    if (number >= 1 && number <= names.length) open(names[number - 1]);
    else if (event.key === "/") {
      open("flame");
      flame.searchBox.focus();
      flame.searchBox.select();
    } else if (event.key === "t") theme();
    else if (event.key === "?") help.showModal();
    else if (act) {
      open("flame");
      act();
    } else return;
    event.preventDefault();
  });
}

function helpDialog() {
  const dialog = el(
    "dialog",
    { class: "help" },
    el("h2", {}, "Keys"),
    el(
      "table",
      {},
      el(
        "tbody",
        {},
        KEYS.map(([key, what]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, what))),
      ),
    ),
    el("form", { method: "dialog" }, el("button", { class: "plain" }, "Close")),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return dialog;
}

// A sounding lead on its line.
function logo() {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "logo");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", LOGO);
  svg.append(path);
  return svg;
}

start();
