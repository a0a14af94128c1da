// The page's host inside VS Code: everything comes from the extension by message.

import type { Findings, Report } from "../../model/report";
import type { Compared, Host, PythonSays } from "../../views/host";
import type { FromPage, ToPage } from "../messages";

export interface Api {
  postMessage(message: FromPage): void;
}

export class EditorHost implements Host {
  readonly names: string[];
  readonly version: string;
  readonly commands = false;
  private readonly profiles: Uint8Array[];
  private readonly found: (Findings | null)[];
  private readonly waiting = new Map<number, (text: string | null) => void>();
  private asked = 0;
  private readonly said: Promise<PythonSays | null>;
  private readonly look: number;
  private resolve: (said: PythonSays | null) => void = () => undefined;

  constructor(
    private readonly api: Api,
    opened: Extract<ToPage, { type: "open" }>,
  ) {
    this.names = opened.names;
    this.version = opened.version;
    this.profiles = opened.profiles;
    this.found = opened.findings;
    this.said = new Promise((resolve) => (this.resolve = resolve));
    this.look = opened.look;
  }

  async bytes(index: number): Promise<Uint8Array> {
    return this.profiles[index];
  }

  /** Python has answered, or will not. */
  answered(look: number, said: PythonSays | null): void {
    if (look === this.look) this.resolve(said);
  }

  async report(index: number): Promise<Report | null> {
    return (await this.said)?.reports[index] ?? null;
  }

  async findings(index: number): Promise<Findings | null> {
    return (await this.said)?.findings[index] ?? this.found[index] ?? null;
  }

  async comparison(): Promise<Compared | null> {
    const { comparison, comparedTree } = (await this.said) ?? {};
    return comparison && comparedTree ? { found: comparison, tree: comparedTree } : null;
  }

  source(file: string): Promise<string | null> {
    const id = ++this.asked;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.api.postMessage({ type: "source", id, file });
    });
  }

  answer(id: number, text: string | null): void {
    this.waiting.get(id)?.(text);
    this.waiting.delete(id);
  }

  openFile(file: string, line: number): void {
    this.api.postMessage({ type: "openFile", file, line, asked: true });
  }

  clicked(file: string, line: number): void {
    this.api.postMessage({ type: "openFile", file, line, asked: false });
  }
}
