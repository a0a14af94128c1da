// The entry of the page inside VS Code.

import "../../views/style.css";
import "./theme.css";
import { start } from "../../views/app";
import type { ToPage } from "../messages";
import { EditorHost, type Api } from "./host";

declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();
let host: EditorHost | null = null;

addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  if (data.type === "open") {
    host = new EditorHost(api, data);
    void start(fresh(), () => host as EditorHost);
  } else if (data.type === "failed") {
    const { sentence } = data;
    void start(fresh(), () => {
      throw Object.assign(new Error(sentence), { name: "HostError" });
    });
  } else if (data.type === "said") host?.answered(data.look, data.said);
  else if (data.type === "show") location.hash = `#flame?row=${data.row}&asked=${Date.now()}`;
  else host?.answer(data.id, data.text);
});
followTheme();
api.postMessage({ type: "ready" });

/** A root of its own for each profile, so that nothing of the one before is left. */
function fresh(): HTMLElement {
  const root = document.createElement("div");
  root.id = "app";
  document.getElementById("app")?.replaceWith(root);
  return root;
}

/** The editor says its theme as a class of the body; the page's own switch changes nothing here. */
function followTheme(): void {
  const follow = () => {
    const light = ["vscode-light", "vscode-high-contrast-light"].some((name) => document.body.classList.contains(name));
    document.documentElement.dataset.theme = light ? "light" : "dark";
    dispatchEvent(new Event("themechange"));
  };
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  follow();
}
