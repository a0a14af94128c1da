// node model.mjs QUESTION FILE...: what the page's model, without a page, says of files; printed as JSON.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const ui = fileURLToPath(new URL("../../ui/", import.meta.url));
const { build } = createRequire(`${ui}package.json`)("esbuild");
const [question, ...files] = process.argv.slice(2);

const entry = `
  export { backwardEdges } from "./model/dataflow";
  export { openProfile } from "./model/reader";
`;
const made = await build({
  stdin: { contents: entry, resolveDir: ui, loader: "ts" },
  bundle: true,
  write: false,
  format: "esm",
  target: "es2022",
});
const model = await import(
  `data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`
);
const profiles = [];
for (const file of files) profiles.push(await model.openProfile(new Uint8Array(await readFile(file))));

const QUESTIONS = {
  edges([profile]) {
    const { source, target } = model.backwardEdges(profile);
    return source.map((one, i) => [one, target[i]]);
  },
};
console.log(JSON.stringify(QUESTIONS[question](profiles)));
