// node speedscope.mjs FILE...: has speedscope open each file and prints, as one JSON list, what it exports again for it.
// speedscope also reads pprof, collapsed stacks and .cpuprofile, so it is a reader of those formats that is not ours.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./browser.mjs";

const home = dirname(createRequire(import.meta.url).resolve("speedscope/package.json"));
const viewer = pathToFileURL(join(home, "dist", "release", "index.html")).href;

async function understood(page, file) {
  await page.goto("about:blank");
  await page.goto(viewer);
  await page.locator("input[type=file]").setInputFiles(file);
  await page.waitForFunction(
    () => document.title !== "speedscope" || document.body.innerText.includes("Something went wrong"),
    null,
    { timeout: 30_000 },
  );
  if (!(await page.title()).includes("speedscope") || (await page.innerText("body")).includes("Something went wrong"))
    throw new Error(`speedscope could not read ${file}`);
  const download = page.waitForEvent("download", { timeout: 30_000 });
  await page.keyboard.press("Control+s");
  return JSON.parse(await readFile(await (await download).path(), "utf8"));
}

const results = await withPage({ acceptDownloads: true }, async (page) => {
  const made = [];
  for (const file of process.argv.slice(2)) made.push(await understood(page, file));
  return made;
});
console.log(JSON.stringify(results));
