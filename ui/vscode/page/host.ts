// The page's host inside VS Code: everything comes from the extension by message.

import type { Findings, Report } from "../../model/report";
import type { Host } from "../../views/host";
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

  constructor(
    private readonly api: Api,
    opened: Extract<ToPage, { type: "open" }>,
  ) {
    this.names = opened.names;
    this.version = opened.version;
    this.profiles = opened.profiles;
    this.found = opened.findings;
  }

  async bytes(index: number): Promise<Uint8Array> {
    return this.profiles[index];
  }

  /** Made by the page itself: no Python is needed to read. */
  async report(): Promise<Report | null> {
    return null;
  }

  async findings(index: number): Promise<Findings | null> {
    return this.found[index] ?? null;
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
