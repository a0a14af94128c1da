// The two hosts of the web page: everything in the file itself, or a local server of `leadline view`.

import { fromBase64 } from "../model/base64";
import type { Changes } from "../model/changes";
import type { Predicted } from "../model/predicted";
import type { Findings, Report } from "../model/report";
import { isObject } from "../model/reader";
import type { Compared, Host } from "../views/host";

/** How often the server of a run that goes on is asked whether there is more. */
const ASK_MS = 2000;

export class HostError extends Error {
  override name = "HostError";
}

interface PageData {
  version: string;
  names: string[];
  reports: (Report | null)[];
  findings: (Findings | null)[];
  sources: Record<string, string>;
  /** Those that the page was made with. */
  predicted?: Predicted[];
  compared?: Compared;
}

/** What the document shows where it is no profile but an answer about changes. */
export function changesIn(document: Document): Changes | null {
  const data: unknown = JSON.parse(document.getElementById("data")?.textContent || "null");
  return isObject(data) && isObject(data.changes) ? (data.changes as unknown as Changes) : null;
}

/** The host this document is for; raises HostError where it names none. */
export function hostOf(document: Document): Host {
  const text = document.getElementById("data")?.textContent;
  if (!text) throw new HostError("This page was opened without a profile; run `leadline view FILE`.");
  const data: unknown = JSON.parse(text);
  if (isObject(data) && data.server === true)
    return new Server(String(data.version), (data.names as string[]) ?? [], data.live === true);
  return new Embedded(data as PageData, document);
}

/** The report as one file: the profile stands in it as base64. */
class Embedded implements Host {
  readonly names: string[];
  readonly version: string;
  readonly commands = true;
  predicted?: (index: number, name: string) => Promise<Predicted>;
  readonly predictedAtOnce: readonly string[];

  constructor(
    private readonly data: PageData,
    private readonly document: Document,
  ) {
    this.names = data.names;
    const { predicted = [] } = data;
    this.predictedAtOnce = predicted.map((one) => one.chosen?.title ?? "");
    const scenarios = predicted.flatMap(({ chosen }) => (chosen ? [chosen] : []));
    const answer = (name: string) => predicted.find((one) => one.chosen?.title === name) ?? predicted[0];
    if (predicted.length) this.predicted = async (_, name) => ({ ...answer(name), scenarios });
    this.version = data.version;
  }

  async bytes(index: number): Promise<Uint8Array> {
    const text = this.document.getElementById(`profile-${index}`)?.textContent;
    if (!text) throw new HostError("This page does not hold its profile; it may have been cut off when it was saved.");
    return fromBase64(text.trim());
  }

  async report(index: number): Promise<Report | null> {
    return this.data.reports[index] ?? null;
  }

  async findings(index: number): Promise<Findings | null> {
    return this.data.findings[index] ?? null;
  }

  async comparison(): Promise<Compared | null> {
    return this.data.compared ?? null;
  }

  async source(file: string): Promise<string | null> {
    return Object.hasOwn(this.data.sources, file) ? this.data.sources[file] : null;
  }
}

/** The server of `leadline view`; addresses are relative to the page's, which holds the token. */
class Server implements Host {
  readonly commands = true;
  changed?: () => Promise<boolean>;
  private look = 1;

  constructor(
    readonly version: string,
    readonly names: string[],
    live: boolean,
  ) {
    if (live) this.changed = () => this.nextLook();
  }

  private async nextLook(): Promise<boolean> {
    for (;;) {
      await new Promise((done) => setTimeout(done, ASK_MS));
      if (document.hidden) continue;
      const now = (await (await this.fetched("now")).json()) as { look: number; ended: boolean };
      if (now.look !== this.look) {
        this.look = now.look;
        return true;
      }
      if (now.ended) return false;
    }
  }

  async bytes(index: number): Promise<Uint8Array> {
    const answer = await this.fetched(`profile/${index}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  async report(index: number): Promise<Report | null> {
    return (await (await this.fetched(`report/${index}`)).json()) as Report | null;
  }

  async findings(index: number): Promise<Findings | null> {
    return (await (await this.fetched(`findings/${index}`)).json()) as Findings | null;
  }

  async predicted(index: number, name: string): Promise<Predicted> {
    return (await (await this.fetched(`predicted/${index}?${new URLSearchParams({ name })}`)).json()) as Predicted;
  }

  async changes(index: number): Promise<Changes | { trouble: string }> {
    return (await (await this.fetched(`changes/${index}`)).json()) as Changes | { trouble: string };
  }

  async comparison(): Promise<Compared | null> {
    const found = (await (await this.fetched("comparison")).json()) as Compared["found"] | null;
    return found && { found, tree: (await (await this.fetched("compared-tree")).json()) as Compared["tree"] };
  }

  async source(file: string): Promise<string | null> {
    const answer = await this.fetched(`source?${new URLSearchParams({ file })}`);
    return ((await answer.json()) as { text: string | null }).text;
  }

  private async fetched(path: string): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(path);
    } catch {
      throw new HostError("The server of this page has ended; run `leadline view` again.");
    }
    if (answer.ok) return answer;
    const said = (await answer.text().catch(() => "")).trim();
    throw new HostError(said || `The server of this page answered ${answer.status}.`);
  }
}
