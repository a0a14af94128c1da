// Profiles that are open, as the extension itself reads them: for the cost of lines and the problems. One is current: the
// last one that was looked at.

import * as vscode from "vscode";
import { fileCosts, type FileCosts } from "../model/costs";
import { savedFindings } from "../model/findings";
import type { Profile } from "../model/profile";
import { openProfile } from "../model/reader";
import type { Findings } from "../model/report";
import { storedReport } from "../model/stored";

export class OpenProfile {
  readonly findings: Findings | null;
  metric: string;
  /** Why the step is slow, as the file keeps it or Python says; may be empty. */
  verdict: string;
  private costsOf: { metric: string; files: Map<string, FileCosts> } | null = null;

  constructor(
    readonly uri: vscode.Uri,
    readonly profile: Profile,
  ) {
    this.findings = savedFindings(profile);
    this.metric = profile.metrics.main;
    this.verdict = storedReport(profile, this.name).verdict?.sentence ?? "";
  }

  get name(): string {
    return this.uri.path.slice(this.uri.path.lastIndexOf("/") + 1);
  }

  get cwd(): string {
    const { cwd } = this.profile.meta.program;
    return typeof cwd === "string" ? cwd : "";
  }

  /** When the last of its processes ended, CLOCK_REALTIME in ms; 0 where unknown. */
  get endedMs(): number {
    return Math.max(0, ...this.profile.tables.processes.end_ns) / 1e6;
  }

  get costs(): Map<string, FileCosts> {
    if (this.costsOf?.metric !== this.metric)
      this.costsOf = { metric: this.metric, files: fileCosts(this.profile, this.metric) };
    return this.costsOf.files;
  }
}

export class Store implements vscode.Disposable {
  private readonly open = new Map<string, OpenProfile>();
  private readonly holders = new Map<string, Set<object>>();
  private shown: string | null = null;
  private readonly emitter = new vscode.EventEmitter<void>();
  /** Another profile is current, or it is shown by another metric, or a file was read again. */
  readonly onChange = this.emitter.event;

  get current(): OpenProfile | null {
    return (this.shown && this.open.get(this.shown)) || null;
  }

  get all(): OpenProfile[] {
    return [...this.open.values()];
  }

  of(uri: vscode.Uri): OpenProfile | undefined {
    return this.open.get(uri.toString());
  }

  /** `holder`: the panel that shows it; the profile stays open until all of them have closed it. Raises ProfileFileError. */
  async add(uri: vscode.Uri, bytes: Uint8Array, holder: object): Promise<OpenProfile> {
    const made = new OpenProfile(uri, await openProfile(bytes));
    this.open.set(uri.toString(), made);
    this.holders.set(uri.toString(), (this.holders.get(uri.toString()) ?? new Set()).add(holder));
    this.shown = uri.toString();
    this.emitter.fire();
    return made;
  }

  close(uri: vscode.Uri, holder: object): void {
    const holders = this.holders.get(uri.toString());
    holders?.delete(holder);
    if (holders?.size) return;
    this.holders.delete(uri.toString());
    this.open.delete(uri.toString());
    if (this.shown === uri.toString()) this.shown = [...this.open.keys()].pop() ?? null;
    this.emitter.fire();
  }

  look(uri: vscode.Uri): void {
    if (this.shown === uri.toString() || !this.open.has(uri.toString())) return;
    this.shown = uri.toString();
    this.emitter.fire();
  }

  changed(): void {
    this.emitter.fire();
  }

  dispose(): void {
    this.emitter.dispose();
  }
}
