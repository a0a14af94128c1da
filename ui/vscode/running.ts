// "Profile this file" and "Profile this test": the user's own interpreter runs `leadline run` in a terminal; the profile opens
// when it has ended.

import * as vscode from "vscode";
import { isTestFile, testAt, testsIn } from "./tests";

interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
  };
}

export async function profileFile(uri: vscode.Uri | undefined): Promise<void> {
  const file = uri ?? vscode.window.activeTextEditor?.document.uri;
  if (!file) return;
  const output = vscode.Uri.joinPath(file, "..", `${stem(file)}.leadline`);
  await profiled(file, output, [file.fsPath], stem(file));
}

export async function profileTest(uri?: vscode.Uri, id?: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const file = uri ?? editor?.document.uri;
  const test = id ?? (editor ? testAt(editor.document.getText(), editor.selection.active.line)?.id : undefined);
  if (!file || !test) {
    void vscode.window.showWarningMessage("Leadline: there is no test of pytest at the cursor.");
    return;
  }
  const name = test.replaceAll("::", ".");
  const output = vscode.Uri.joinPath(file, "..", `${name}.leadline`);
  await profiled(file, output, ["-m", "pytest", `${file.fsPath}::${test}`], name);
}

/** The findings of a profile, saved in it. */
export async function analyze(uri: vscode.Uri): Promise<void> {
  if (!(await allowed())) return;
  await run(await interpreter(uri), ["-m", "leadline", "analyze", "--save", uri.fsPath], uri, "find problems");
}

async function profiled(file: vscode.Uri, output: vscode.Uri, target: string[], name: string): Promise<void> {
  if (!(await allowed())) return;
  await vscode.workspace.saveAll(false);
  const python = await interpreter(file);
  const options = vscode.workspace.getConfiguration("leadline", file).get<string[]>("runArguments", []);
  const words = ["-m", "leadline", "run", ...options, "-o", output.fsPath, ...target];
  const started = Date.now();
  const code = await run(python, words, file, `profile ${name}`);
  if (!(await newer(output, started))) {
    void vscode.window.showErrorMessage(
      `Leadline wrote no profile (exit code ${code ?? "unknown"}); the terminal says why. Is Leadline installed in ${python}?`,
    );
    return;
  }
  await run(python, ["-m", "leadline", "analyze", "--save", output.fsPath], file, `find problems of ${name}`, true);
  await vscode.commands.executeCommand("vscode.openWith", output, "leadline.profile");
}

async function allowed(): Promise<boolean> {
  if (vscode.workspace.isTrusted) return true;
  void vscode.window.showWarningMessage("Leadline runs programs in trusted workspaces only.");
  return false;
}

/** The interpreter that has Leadline, as far as settings say. */
export async function interpreter(resource: vscode.Uri): Promise<string> {
  const chosen = vscode.workspace.getConfiguration("leadline", resource).get("python", "");
  if (chosen) return chosen;
  const python = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  try {
    const { environments } = (await python?.activate()) ?? {};
    const path = environments?.getActiveEnvironmentPath(resource);
    const found = path && (await environments?.resolveEnvironment(path))?.executable.uri?.fsPath;
    if (found) return found;
  } catch {
    // another release of that extension: its setting and the system's Python are left
  }
  const usual = vscode.workspace.getConfiguration("python", resource).get("defaultInterpreterPath", "");
  return usual && usual !== "python" ? usual : "python3";
}

/** The exit code, when the process has ended; undefined where it could not be started. */
async function run(
  python: string,
  words: string[],
  file: vscode.Uri,
  name: string,
  quiet = false,
): Promise<number | undefined> {
  const folder = vscode.workspace.getWorkspaceFolder(file);
  const cwd = folder?.uri.fsPath ?? vscode.Uri.joinPath(file, "..").fsPath;
  const task = new vscode.Task(
    { type: "leadline", target: name },
    folder ?? vscode.TaskScope.Workspace,
    name,
    "leadline",
    new vscode.ProcessExecution(python, words, { cwd }),
    [],
  );
  task.presentationOptions = {
    reveal: quiet ? vscode.TaskRevealKind.Silent : vscode.TaskRevealKind.Always,
    panel: vscode.TaskPanelKind.Dedicated,
    clear: true,
  };
  const execution = await vscode.tasks.executeTask(task);
  return new Promise((resolve) => {
    const listeners = [
      vscode.tasks.onDidEndTaskProcess((event) => event.execution === execution && end(event.exitCode)),
      vscode.tasks.onDidEndTask((event) => event.execution === execution && setTimeout(() => end(undefined), 500)),
    ];
    const end = (code: number | undefined) => {
      for (const one of listeners) one.dispose();
      resolve(code);
    };
  });
}

async function newer(uri: vscode.Uri, than: number): Promise<boolean> {
  try {
    return (await vscode.workspace.fs.stat(uri)).mtime >= than - 2000; // clocks of file systems are coarse
  } catch {
    return false;
  }
}

function stem(uri: vscode.Uri): string {
  return uri.path.slice(uri.path.lastIndexOf("/") + 1).replace(/\.py$/, "");
}

/** "Profile this test" above every test of a test file. */
export class TestLenses implements vscode.CodeLensProvider {
  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!vscode.workspace.isTrusted || document.uri.scheme !== "file" || !isTestFile(document.uri.path)) return [];
    return testsIn(document.getText()).map(({ line, id }) => {
      const command = { title: "Profile this test", command: "leadline.profileTest", arguments: [document.uri, id] };
      return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command);
    });
  }
}
