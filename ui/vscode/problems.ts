// Findings of the open profiles in the Problems panel, each on its line and with links to what helps.

import * as vscode from "vscode";
import type { Finding } from "../model/report";
import { duration, visible } from "../model/units";
import type { Files } from "./files";
import type { OpenProfile, Store } from "./store";

class Problem extends vscode.Diagnostic {
  constructor(
    line: number,
    readonly finding: Finding,
    readonly profile: vscode.Uri,
  ) {
    const place = new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), Number.MAX_SAFE_INTEGER);
    const severity =
      finding.severity === "warning" ? vscode.DiagnosticSeverity.Warning : vscode.DiagnosticSeverity.Information;
    super(place, said(finding), severity);
    this.source = "Leadline";
    const help = helpOf(finding);
    this.code = help ? { value: finding.rule, target: help } : finding.rule;
  }
}

export class Problems implements vscode.CodeActionProvider, vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("leadline");
  private readonly listener: vscode.Disposable;
  private problems: [vscode.Uri, Problem[]][] = [];
  private round = 0;

  constructor(
    private readonly store: Store,
    private readonly files: Files,
  ) {
    this.listener = store.onChange(() => void this.refresh());
  }

  dispose(): void {
    this.listener.dispose();
    this.collection.dispose();
  }

  private async refresh(): Promise<void> {
    const round = ++this.round;
    const found = new Map<string, [vscode.Uri, Problem[]]>();
    for (const profile of this.store.all)
      for (const finding of profile.findings?.findings ?? []) {
        const [uri, problem] = await this.problem(profile, finding);
        const key = uri.toString();
        if (!found.has(key)) found.set(key, [uri, []]);
        found.get(key)?.[1].push(problem);
      }
    if (round !== this.round) return; // a later change is on its way
    this.problems = [...found.values()];
    this.collection.clear();
    this.collection.set(this.problems);
  }

  /** On its line where the file is here, else on the profile itself, so that none is lost. */
  private async problem(profile: OpenProfile, finding: Finding): Promise<[vscode.Uri, Problem]> {
    const places: [vscode.Uri, Finding["lines"][number]][] = [];
    for (const line of finding.lines.slice(0, 10)) {
      const uri = line.line > 0 ? await this.files.find(profile, line.file) : null;
      if (uri) places.push([uri, line]);
    }
    if (!places.length) return [profile.uri, new Problem(1, finding, profile.uri)];
    const [[uri, first], ...others] = places;
    const problem = new Problem(first.line, finding, profile.uri);
    problem.relatedInformation = others.map(
      ([other, line]) =>
        new vscode.DiagnosticRelatedInformation(
          new vscode.Location(other, new vscode.Position(line.line - 1, 0)),
          visible(line.text.trim() || line.function || "here too"),
        ),
    );
    return [uri, problem];
  }

  provideCodeActions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    const here = this.problems.find(([uri]) => uri.toString() === document.uri.toString())?.[1] ?? [];
    return here.filter((one) => one.range.intersection(range)).flatMap((one) => actions(one));
  }
}

function actions(problem: Problem): vscode.CodeAction[] {
  const { finding, profile } = problem;
  const action = (title: string, command: string, ...args: unknown[]) => {
    const made = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
    made.diagnostics = [problem];
    made.command = { title, command, arguments: args };
    return made;
  };
  const name = visible(finding.title);
  const made = [];
  if (finding.paths.length)
    made.push(action(`Leadline: show in the flame graph: ${name}`, "leadline.reveal", profile, finding.paths[0]));
  const help = helpOf(finding);
  if (help) made.push(action(`Leadline: read about ${visible(finding.rule)}`, "vscode.open", help));
  if (finding.evidence.length) made.push(action(`Leadline: evidence for: ${name}`, "leadline.evidence", finding));
  return made;
}

/** Only a web page: a profile is someone else's data and may start nothing here. */
function helpOf(finding: Finding): vscode.Uri | null {
  return /^https:\/\//.test(finding.learn_more) ? vscode.Uri.parse(finding.learn_more) : null;
}

function said(finding: Finding): string {
  const { expected_ns: expected, per } = finding.gain;
  const gain = expected > 0 ? ` Saves about ${duration(expected)} a ${per === "run" ? "run" : "step"}.` : "";
  return `${visible(finding.title)}. ${visible(finding.remedy)}${gain}`.replace("..", ".");
}
