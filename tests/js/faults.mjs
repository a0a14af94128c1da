// node faults.mjs FILE.html FOLDER: what a person sees when something is missing: WebGL2, a part of the file, the profile itself.
// FOLDER/*.html are pages that cannot be shown.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const [file, folder] = process.argv.slice(2);
const url = pathToFileURL(file).href;

const colours = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector(".flame-boxes");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < pixels.length; i += 4)
      if (pixels[i + 3]) seen.add(`${pixels[i]} ${pixels[i + 1]} ${pixels[i + 2]}`);
    return seen.size;
  });

const drawn = await withPage({ colorScheme: "light" }, async (page, seen) => {
  const o = {};
  await open(page, `${url}#flame`);
  o.usual = await colours(page);
  o.lost = await page.evaluate(async () => {
    const canvas = document.querySelector(".flame-boxes");
    const gl = canvas.getContext("webgl2");
    if (!gl) return false;
    const lost = new Promise((done) => canvas.addEventListener("webglcontextlost", done));
    gl.getExtension("WEBGL_lose_context").loseContext();
    return Boolean(await lost);
  });
  await settled(page);
  o.afterLoss = await colours(page);
  await page.addInitScript(() => {
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind === "webgl2" ? null : original.call(this, kind, ...rest);
    };
  });
  await page.reload();
  await page.waitForSelector("main");
  await settled(page);
  o.without = await colours(page);
  o.errors = seen.errors;
  return o;
});

const shown = await withPage({}, async (page) => {
  const made = {};
  for (const name of await readdir(folder)) {
    await page.goto(pathToFileURL(join(folder, name)).href);
    await page.waitForSelector("#app *");
    made[name] = await page.locator("#app").innerText();
  }
  return made;
});
console.log(JSON.stringify({ drawn, shown }));
