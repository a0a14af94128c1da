// What lines cost, beside them: decorations by heat, and a lens above every function that was measured.

import * as vscode from "vscode";
import type { FileCosts } from "../model/costs";
import { cut } from "../model/names";
import { duration, inUnit, metricName, share, visible } from "../model/units";
import { changedSince } from "./sources";
import type { Files } from "./files";
import type { OpenProfile, Store } from "./store";

const LEVELS = [0.2, 0.05, 0.01]; // shares of the whole from which a line is hot, warm, tinted
const SHOWN = 0.001; // below this share a line stays as it is
const MOST_LENSES = 500;

interface Costs {
  profile: OpenProfile;
  costs: FileCosts;
  changed: boolean;
}

export class LineCosts implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly hidden: vscode.TextEditorDecorationType;
  private readonly levels: vscode.TextEditorDecorationType[];
  private readonly emitter = new vscode.EventEmitter<void>();
  private readonly parts: vscode.Disposable[];
  readonly onDidChangeCodeLenses = this.emitter.event;

  constructor(
    private readonly store: Store,
    private readonly files: Files,
  ) {
    const type = (level: number) =>
      vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: level ? new vscode.ThemeColor(`leadline.heat${level}`) : undefined,
        overviewRulerColor: level > 1 ? new vscode.ThemeColor("leadline.costText") : undefined,
        overviewRulerLane: vscode.OverviewRulerLane.Left,
      });
    this.hidden = type(0);
    this.levels = [type(3), type(2), type(1)];
    this.parts = [
      store.onChange(() => this.refresh()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.refresh()),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("leadline") && this.refresh()),
      this.hidden,
      ...this.levels,
      this.emitter,
    ];
  }

  dispose(): void {
    for (const part of this.parts) part.dispose();
  }

  refresh(): void {
    this.emitter.fire();
    for (const editor of vscode.window.visibleTextEditors) void this.paint(editor);
  }

  private get wanted(): boolean {
    return vscode.workspace.getConfiguration("leadline").get("showCostOfLines", true);
  }

  /** What the current profile says about a document; null where it does not know it. */
  private async costsOf(document: vscode.TextDocument): Promise<Costs | null> {
    const profile = this.store.current;
    if (!profile || !this.wanted || !isPython(document)) return null;
    const name = document.uri.path.slice(document.uri.path.lastIndexOf("/"));
    for (const [file, costs] of profile.costs) {
      if (!`/${file.replaceAll("\\", "/")}`.endsWith(name)) continue;
      const uri = await this.files.find(profile, file);
      if (uri?.toString() === document.uri.toString())
        return { profile, costs, changed: await changedSince(profile, file, uri) };
    }
    return null;
  }

  private async paint(editor: vscode.TextEditor): Promise<void> {
    const found = await this.costsOf(editor.document);
    const painted: vscode.DecorationOptions[][] = [[], [], [], []];
    if (found && !found.changed) {
      const total = wholeOf(found.profile);
      for (const [line, cost] of found.costs.lines) {
        const part = total ? cost.total / total : 0;
        if (line > editor.document.lineCount || part < SHOWN) continue;
        const level = LEVELS.findIndex((least) => cost.booked >= least * total); // colour where the time is spent
        painted[level < 0 ? 3 : level].push(this.decoration(found, line));
      }
    }
    [...this.levels, this.hidden].forEach((type, i) => editor.setDecorations(type, painted[i]));
  }

  private decoration({ profile, costs }: Costs, line: number): vscode.DecorationOptions {
    const cost = costs.lines.get(line) as { booked: number; total: number };
    const unit = profile.profile.metrics.describe(profile.metric)?.unit ?? "1";
    const whole = wholeOf(profile);
    const hover = new vscode.MarkdownString();
    hover.appendText(
      `${metricName(profile.metric)}: ${inUnit(cost.total, unit)} with all that the line calls, ` +
        `${inUnit(cost.booked, unit)} booked on itself (${profile.name})`,
    );
    return {
      range: new vscode.Range(line - 1, 0, line - 1, 0),
      hoverMessage: hover,
      renderOptions: {
        after: {
          contentText: `${inUnit(cost.total, unit)} · ${share(cost.total, whole)}`,
          color: new vscode.ThemeColor("leadline.costText"),
          margin: "0 0 0 3em",
        },
      },
    };
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const found = await this.costsOf(document);
    if (!found) return [];
    const top = new vscode.Range(0, 0, 0, 0);
    if (found.changed) {
      const title = `${found.profile.name}: this file has changed since it ran, so no cost is shown`;
      return [new vscode.CodeLens(top, { title, command: "" })];
    }
    const { profile, costs } = found;
    const unit = profile.profile.metrics.describe(profile.metric)?.unit ?? "1";
    const least = SHOWN * wholeOf(profile);
    return costs.functions.slice(0, MOST_LENSES).flatMap((one) => {
      if (one.firstLine > document.lineCount || one.total < least || one.name.endsWith(">")) return [];
      const line = one.firstLine - 1;
      const title = `${inUnit(one.total, unit)} ${metricName(profile.metric)} · ${share(one.total, wholeOf(profile))}`;
      const command = { title, command: "leadline.reveal", arguments: [profile.uri, one.node] };
      return [new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command)];
    });
  }
}

/** Editors without the Python language take its files for plain text. */
function isPython({ languageId, uri }: vscode.TextDocument): boolean {
  return languageId === "python" || uri.path.endsWith(".py");
}

function wholeOf({ profile, metric }: OpenProfile): number {
  return profile.metrics.values(metric).whole[0];
}

const MOST_VERDICT = 60;

/** Why the step is slow, or `run.leadline: 16.2 s time`, beside the branch and the errors; a click changes the metric. */
export class CurrentItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("leadline.current", vscode.StatusBarAlignment.Right);
  private readonly listener: vscode.Disposable;

  constructor(store: Store) {
    this.item.name = "Leadline";
    this.item.command = "leadline.chooseMetric";
    this.listener = store.onChange(() => {
      const profile = store.current;
      if (!profile) return this.item.hide();
      const unit = profile.profile.metrics.describe(profile.metric)?.unit ?? "ns";
      const total = unit === "ns" ? duration(wholeOf(profile)) : inUnit(wholeOf(profile), unit);
      const marked = `${visible(profile.name)}: ${total} ${metricName(profile.metric)}`;
      const verdict = visible(profile.verdict);
      this.item.text = `$(flame) ${verdict ? cut(verdict, MOST_VERDICT) : marked}`;
      this.item.tooltip = [verdict, marked, "Lines are marked by this; click for another metric"]
        .filter(Boolean)
        .join("\n");
      this.item.show();
    });
  }

  dispose(): void {
    this.item.dispose();
    this.listener.dispose();
  }
}
