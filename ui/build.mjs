// node build.mjs [--check]: makes the page's bundle, python/leadline/report/assets/page.{js,css}. The same sources give the
// same bytes; --check writes nothing and fails where what is committed is not what the sources give.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "python", "leadline", "report", "assets");
const MOST_COMPRESSED = 400_000;

const made = await build({
  absWorkingDir: here,
  entryPoints: { page: "web/main.ts" },
  outdir: assets,
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: "es2022",
  charset: "ascii", // the page is put together as text; nothing in it depends on an encoding
  legalComments: "inline",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});

let stale = 0;
let compressed = 0;
for (const file of made.outputFiles) {
  const text = file.text.replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style");
  compressed += gzipSync(text, { level: 9 }).length;
  const known = await readFile(file.path, "utf8").catch(() => "");
  if (known === text) continue;
  const name = relative(join(here, ".."), file.path);
  if (process.argv.includes("--check")) {
    console.error(`${name} is not what ui/ gives; run \`make ui\` and commit it.`);
    stale = 1;
  } else {
    await writeFile(file.path, text);
    console.log(`wrote ${name}`);
  }
}
if (compressed > MOST_COMPRESSED) {
  console.error(`The bundle is ${compressed} bytes compressed; at most ${MOST_COMPRESSED} are allowed.`);
  stale = 1;
}
console.log(`bundle: ${compressed} bytes compressed`);
process.exit(stale);
