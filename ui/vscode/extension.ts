// Leadline in VS Code and its kin: puts the parts together. No part needs Python but those of running.ts.

import * as vscode from "vscode";
import type { Finding } from "../model/report";
import { metricName, visible } from "../model/units";
import { ProfileEditors, TRACE_TYPE, VIEW_TYPE } from "./editor";
import { Files } from "./files";
import { CurrentItem, LineCosts } from "./lines";
import { Problems } from "./problems";
import { analyze, profileFile, profileTest, TestLenses } from "./running";
import { Store } from "./store";

const MOST_PROFILES = 200;

export function activate(context: vscode.ExtensionContext): void {
  const store = new Store();
  const files = new Files(context.workspaceState);
  const editors = new ProfileEditors(context, store, files);
  const lines = new LineCosts(store, files);
  const problems = new Problems(store, files);
  const python: vscode.DocumentSelector = [{ language: "python" }, { pattern: "**/*.py" }];
  const command = vscode.commands.registerCommand;
  context.subscriptions.push(
    store,
    lines,
    problems,
    new CurrentItem(store),
    ...[VIEW_TYPE, TRACE_TYPE].map((type) =>
      vscode.window.registerCustomEditorProvider(type, editors, {
        webviewOptions: { retainContextWhenHidden: true },
        supportsMultipleEditorsPerDocument: false,
      }),
    ),
    vscode.languages.registerCodeLensProvider(python, lines),
    vscode.languages.registerCodeLensProvider(python, new TestLenses()),
    vscode.languages.registerCodeActionsProvider({ scheme: "*" }, problems, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
    vscode.workspace.onDidCreateFiles(() => files.forget()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => files.forget()),
    vscode.workspace.onDidSaveTextDocument(() => lines.refresh()),
    command("leadline.profileFile", (uri?: vscode.Uri) => profileFile(uri)),
    command("leadline.profileTest", (uri?: vscode.Uri, id?: unknown) =>
      profileTest(uri, typeof id === "string" ? id : undefined),
    ),
    command("leadline.analyze", async (uri?: vscode.Uri) => {
      const chosen = uri ?? store.current?.uri;
      if (chosen) await analyze(chosen);
    }),
    command("leadline.compare", async (_?: vscode.Uri, chosen?: vscode.Uri[]) => {
      const two = chosen?.length === 2 ? chosen : await chooseTwo(store);
      if (two) editors.compare(two[0], two[1]);
    }),
    command("leadline.reveal", (uri: vscode.Uri, row: number) => editors.reveal(uri, row)),
    command("leadline.evidence", (finding: Finding) => showEvidence(finding)),
    command("leadline.chooseMetric", () => chooseMetric(store)),
    command("leadline.toggleHeat", async () => {
      const settings = vscode.workspace.getConfiguration("leadline");
      const shown = settings.get("showCostOfLines", true);
      await settings.update("showCostOfLines", !shown, vscode.ConfigurationTarget.Global);
    }),
  );
}

/** Two of the workspace's profiles, the current one before. */
async function chooseTwo(store: Store): Promise<vscode.Uri[] | undefined> {
  const found = await vscode.workspace.findFiles("**/*.leadline", undefined, MOST_PROFILES);
  const items = found.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), uri }));
  const chosen: vscode.Uri[] = [];
  for (const placeHolder of ["The profile from before the change", "The profile from after the change"]) {
    const left = items.filter(({ uri }) => !chosen.includes(uri));
    left.sort((a, b) => Number(isCurrent(store, b.uri)) - Number(isCurrent(store, a.uri)));
    const one = await vscode.window.showQuickPick(left, { placeHolder });
    if (!one) return undefined;
    chosen.push(one.uri);
  }
  return chosen;
}

function isCurrent(store: Store, uri: vscode.Uri): boolean {
  return store.current?.uri.toString() === uri.toString();
}

async function chooseMetric(store: Store): Promise<void> {
  const profile = store.current;
  if (!profile) return;
  const items = profile.profile.metrics.drawn.map(({ name, doc }) => ({ label: metricName(name), detail: doc, name }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: "Mark lines by" });
  if (!chosen) return;
  profile.metric = chosen.name;
  store.changed();
}

async function showEvidence(finding: Finding): Promise<void> {
  const detail = [...finding.evidence, finding.remedy].map((line) => visible(line, 2000)).join("\n");
  await vscode.window.showInformationMessage(visible(finding.title), { modal: true, detail });
}
