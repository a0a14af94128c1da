// A file system that is nowhere: what the test put into FILES (base64 by path), read only. A workspace on it is virtual.

const vscode = require("vscode");

const FILES = {}; // the test writes them in here

function bytesOf(path) {
  return Uint8Array.from(atob(FILES[path]), (one) => one.charCodeAt(0));
}

function below(path) {
  const start = path === "/" ? "/" : `${path}/`;
  const names = new Map();
  for (const file of Object.keys(FILES)) {
    if (!file.startsWith(start)) continue;
    const [name, ...deeper] = file.slice(start.length).split("/");
    names.set(name, deeper.length ? vscode.FileType.Directory : vscode.FileType.File);
  }
  return [...names];
}

function missing(uri) {
  return vscode.FileSystemError.FileNotFound(uri);
}

function refuse(uri) {
  throw vscode.FileSystemError.NoPermissions(uri);
}

const provider = {
  onDidChangeFile: new vscode.EventEmitter().event,
  watch: () => new vscode.Disposable(() => {}),
  stat(uri) {
    if (Object.hasOwn(FILES, uri.path))
      return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: bytesOf(uri.path).length };
    if (!below(uri.path).length) throw missing(uri);
    return { type: vscode.FileType.Directory, ctime: 0, mtime: 0, size: 0 };
  },
  readDirectory: (uri) => below(uri.path),
  readFile(uri) {
    if (!Object.hasOwn(FILES, uri.path)) throw missing(uri);
    return bytesOf(uri.path);
  },
  createDirectory: refuse,
  writeFile: refuse,
  delete: refuse,
  rename: refuse,
};

exports.activate = ({ subscriptions }) =>
  subscriptions.push(vscode.workspace.registerFileSystemProvider("memfs", provider, { isReadonly: true }));
