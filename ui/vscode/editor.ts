// The editor of `.leadline` files, and of traces that Python imports: the page of ui/views in a webview. It only reads.

import * as vscode from "vscode";
import { visible } from "../model/units";
import type { Files } from "./files";
import { imported, pythonSays } from "./asking";
import type { FromPage, ToPage } from "./messages";
import { Sources } from "./sources";
import type { OpenProfile, Store } from "./store";

export const VIEW_TYPE = "leadline.profile";
export const TRACE_TYPE = "leadline.trace";

interface Shown {
  panel: vscode.WebviewPanel;
  say(message: ToPage): void;
}

export class ProfileEditors implements vscode.CustomReadonlyEditorProvider {
  private readonly shown = new Map<string, Shown>();
  private readonly sources = new Sources();
  private looks = 0;

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly store: Store,
    private readonly files: Files,
  ) {}

  openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
    return { uri, dispose: () => undefined };
  }

  async resolveCustomEditor(document: vscode.CustomDocument, panel: vscode.WebviewPanel): Promise<void> {
    const { uri } = document;
    const say = this.page(panel, () => [uri]);
    this.shown.set(uri.toString(), { panel, say });
    const folder = vscode.Uri.joinPath(uri, "..");
    const name = uri.path.slice(uri.path.lastIndexOf("/") + 1).replace(/[[\]{}*?]/g, "?");
    const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(folder, name));
    const again = () => void this.send([uri], say, panel);
    watcher.onDidChange(again);
    watcher.onDidCreate(again);
    panel.onDidChangeViewState(() => panel.active && this.store.look(uri));
    panel.onDidDispose(() => {
      watcher.dispose();
      this.shown.delete(uri.toString());
    });
  }

  /** Two profiles in one page, the first as before. */
  compare(before: vscode.Uri, after: vscode.Uri): void {
    const name = (uri: vscode.Uri) => uri.path.slice(uri.path.lastIndexOf("/") + 1);
    const title = `${name(before)} → ${name(after)}`;
    const panel = vscode.window.createWebviewPanel("leadline.comparison", title, vscode.ViewColumn.Active, {
      retainContextWhenHidden: true,
    });
    this.page(panel, () => [before, after]);
  }

  /** A row of a profile in its flame graph; opens the profile where it is not. */
  async reveal(uri: vscode.Uri, row: number): Promise<void> {
    const open = this.shown.get(uri.toString());
    if (open) open.panel.reveal(undefined, false);
    else
      await vscode.commands.executeCommand(
        "vscode.openWith",
        uri,
        uri.path.endsWith(".leadline") ? VIEW_TYPE : TRACE_TYPE,
      );
    this.shown.get(uri.toString())?.say({ type: "show", row });
  }

  private page(panel: vscode.WebviewPanel, uris: () => vscode.Uri[]): (message: ToPage) => void {
    const { webview } = panel;
    const dist = vscode.Uri.joinPath(this.extension.extensionUri, "dist");
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    let ready = false;
    const waiting: ToPage[] = [];
    const say = (message: ToPage) => {
      if (ready) void webview.postMessage(message);
      else waiting.push(message);
    };
    webview.onDidReceiveMessage(async (message: FromPage) => {
      if (message.type === "ready") {
        ready = true;
        await this.send(uris(), say, panel);
        for (const one of waiting.splice(0)) say(one);
        return;
      }
      const profile = this.store.of(uris()[0]) ?? null; // which the page shows; a second one it compares with
      if (message.type === "source") {
        const text = profile && (await this.sources.text(profile, message.file, this.files));
        say({ type: "source", id: message.id, text });
      } else if (message.type === "openFile" && profile) {
        const follows = vscode.workspace.getConfiguration("leadline").get("openClickedFrame", true);
        if (message.asked || follows) await this.files.show(profile, message.file, message.line, message.asked);
      }
    });
    panel.onDidDispose(() => uris().forEach((uri) => this.store.close(uri, panel)));
    webview.html = html(webview, dist);
    return say;
  }

  private async bytesOf(uri: vscode.Uri): Promise<Uint8Array> {
    const { fs } = vscode.workspace;
    if (uri.path.endsWith(".leadline")) return fs.readFile(uri);
    const folder = this.extension.globalStorageUri;
    await fs.createDirectory(folder);
    const made = vscode.Uri.joinPath(folder, `trace-${++this.looks}-${Date.now()}.leadline`);
    try {
      await imported(uri, made);
      return await fs.readFile(made);
    } finally {
      await fs.delete(made).then(undefined, () => undefined);
    }
  }

  private async send(uris: vscode.Uri[], say: (message: ToPage) => void, holder: object): Promise<void> {
    try {
      const profiles = await Promise.all(uris.map(async (uri) => whole(await this.bytesOf(uri))));
      const open: OpenProfile[] = [];
      for (const [i, uri] of uris.entries()) open.push(await this.store.add(uri, profiles[i], holder));
      const names = uris.map((uri) => vscode.workspace.asRelativePath(uri));
      const version = String(this.extension.extension.packageJSON.version);
      const look = ++this.looks;
      say({ type: "open", look, names, version, profiles, findings: open.map((one) => one.findings) });
      void pythonSays(uris).then((said) => {
        say({ type: "said", look, said });
        for (const [i, one] of open.entries()) one.verdict = said?.reports[i]?.verdict?.sentence ?? one.verdict;
        this.store.changed();
      });
    } catch (error) {
      for (const uri of uris) this.store.close(uri, holder);
      say({ type: "failed", sentence: visible(error instanceof Error ? error.message : String(error)) });
    }
  }
}

/** A plain array of its own: a Buffer of Node, or a part of one, would arrive empty. */
function whole(bytes: Uint8Array): Uint8Array {
  const made = new Uint8Array(bytes.byteLength);
  made.set(bytes);
  return made;
}

/** Nothing but the extension's own script and style can run or load; nothing leaves the machine. */
function html(webview: vscode.Webview, dist: vscode.Uri): string {
  const script = webview.asWebviewUri(vscode.Uri.joinPath(dist, "page.js"));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(dist, "page.css"));
  const policy = `default-src 'none'; script-src ${webview.cspSource}; style-src ${webview.cspSource}; img-src data:`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="${style.toString()}">
<title>Leadline</title>
</head>
<body>
<div id="app"></div>
<script src="${script.toString()}"></script>
</body>
</html>`;
}
