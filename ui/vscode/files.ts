// From a file of a profile to a file of this workspace, and to an editor that shows a line of it.

import * as vscode from "vscode";
import { below, closest, isAbsolute, isRemote, learned, mapped, type Mapping } from "./matching";
import type { OpenProfile } from "./store";

const MAPPINGS = "leadline.mappings";
const MOST_FOUND = 200;
const MOST_MAPPINGS = 20;
/** Schemes that VS Code searches itself. */
const SEARCHED = new Set(["file", "vscode-remote"]);
const SKIPPED = new Set(["node_modules", "__pycache__"]);
const MOST_FOLDERS = 400;
const PATIENCE_MS = 3000;

export class Files {
  private readonly known = new Map<string, Promise<vscode.Uri[]>>();

  constructor(private readonly memory: vscode.Memento) {}

  /** The one file it can be here; null where there is none or where it could be several. */
  async find(profile: OpenProfile, file: string): Promise<vscode.Uri | null> {
    const found = await this.candidates(profile, file);
    return found.length === 1 ? found[0] : null;
  }

  /** Opens a line. `asked`: the user wants this file, so a dialog may help to find it; else it is shown beside, quietly. */
  async show(profile: OpenProfile, file: string, line: number, asked: boolean): Promise<boolean> {
    const found = await this.candidates(profile, file);
    const uri = found.length === 1 ? found[0] : asked ? await this.choose(file, found) : undefined;
    if (!uri) {
      const why = found.length ? `could be ${found.length} files here` : "is not in this workspace";
      vscode.window.setStatusBarMessage(`Leadline: ${nameOf(file)} ${why}`, 5000);
      return false;
    }
    const place = new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), 0);
    const editor = await vscode.window.showTextDocument(uri, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: !asked,
      preview: true,
      selection: place,
    });
    editor.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    return true;
  }

  /** What was found before is looked for again. */
  forget(): void {
    this.known.clear();
  }

  private candidates(profile: OpenProfile, file: string): Promise<vscode.Uri[]> {
    const key = `${profile.cwd}\n${file}`;
    let found = this.known.get(key);
    if (!found) this.known.set(key, (found = this.search(profile, file)));
    return found;
  }

  private async search(profile: OpenProfile, file: string): Promise<vscode.Uri[]> {
    if (!file || file.startsWith("<")) return [];
    const folders = vscode.workspace.workspaceFolders ?? [];
    const full = isAbsolute(file) || !profile.cwd ? file : `${profile.cwd.replace(/\/+$/, "")}/${file}`;
    const tries: vscode.Uri[] = [];
    for (const path of [...mapped(full, this.mappings), full]) {
      if (!isAbsolute(path) || isRemote(path)) continue;
      tries.push(vscode.Uri.file(path));
      for (const folder of folders) if (folder.uri.scheme !== "file") tries.push(folder.uri.with({ path }));
    }
    const relative = isAbsolute(file) ? below(file, profile.cwd) : file;
    if (relative && !relative.split("/").includes(".."))
      for (const folder of folders) tries.push(vscode.Uri.joinPath(folder.uri, relative));
    for (const uri of tries) if (await exists(uri)) return [uri];
    const name = nameOf(file);
    if (!folders.length || !name || /[*?[\]{}]/.test(name)) return [];
    const named = await filesNamed(name);
    const paths = closest(
      file,
      named.map((uri) => uri.path),
    );
    return named.filter((uri) => paths.includes(uri.path));
  }

  private async choose(file: string, found: vscode.Uri[]): Promise<vscode.Uri | undefined> {
    let uri: vscode.Uri | undefined;
    if (found.length) {
      const items = found.map((one) => ({ label: vscode.workspace.asRelativePath(one), uri: one }));
      uri = (await vscode.window.showQuickPick(items, { placeHolder: `Which of these is ${file}?` }))?.uri;
    } else {
      const pick = "Choose the file";
      const said = await vscode.window.showWarningMessage(`${file} is not in this workspace.`, pick);
      if (said === pick) uri = (await vscode.window.showOpenDialog({ title: `Which file is ${file}?` }))?.[0];
    }
    const mapping = uri && learned(file, uri.path);
    if (mapping) {
      const others = this.mappings.filter(({ from }) => from !== mapping.from);
      await this.memory.update(MAPPINGS, [mapping, ...others].slice(0, MOST_MAPPINGS));
      this.forget();
    }
    return uri;
  }

  private get mappings(): Mapping[] {
    return this.memory.get<Mapping[]>(MAPPINGS, []);
  }
}

/** Files of this name in the workspace. Where nobody can search a file system, it is walked through as far as that is quick. */
async function filesNamed(name: string): Promise<vscode.Uri[]> {
  const waiting = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri);
  const searched = waiting.every(({ scheme }) => SEARCHED.has(scheme));
  const found = await search(name, searched ? undefined : PATIENCE_MS);
  if (found.length || searched) return found;
  for (let asked = 0; waiting.length && asked < MOST_FOLDERS && found.length < MOST_FOUND; asked++) {
    const folder = waiting.shift() as vscode.Uri;
    const listed = await vscode.workspace.fs.readDirectory(folder).then(
      (entries) => entries,
      () => [],
    );
    for (const [entry, type] of listed) {
      const uri = vscode.Uri.joinPath(folder, entry);
      if (type === vscode.FileType.Directory && !entry.startsWith(".") && !SKIPPED.has(entry)) waiting.push(uri);
      else if (entry === name && type !== vscode.FileType.Directory) found.push(uri);
    }
  }
  return found;
}

/** `patience`: where no extension searches a scheme, VS Code waits for one for ever. */
async function search(name: string, patience?: number): Promise<vscode.Uri[]> {
  const stop = new vscode.CancellationTokenSource();
  const asked = vscode.workspace.findFiles(`**/${name}`, undefined, MOST_FOUND, stop.token).then(
    (found) => found,
    () => [],
  );
  if (patience === undefined) return asked;
  const nothing = new Promise<vscode.Uri[]>((done) => setTimeout(() => done([]), patience));
  const found = await Promise.race([asked, nothing]);
  stop.cancel();
  return found;
}

function nameOf(file: string): string {
  return file.slice(Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1);
}

async function exists(uri: vscode.Uri): Promise<boolean> {
  try {
    return (await vscode.workspace.fs.stat(uri)).type !== vscode.FileType.Directory;
  } catch {
    return false; // not there, or a scheme that this host does not have
  }
}
