// node pictures.mjs FILE.html FOLDER [write]: six states of a page in light and dark, each made small and held against the
// picture of that name in FOLDER; prints by state how far the mean of all pixels and how many pixels are apart. `write` makes
// the pictures anew.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { open, withPage } from "./browser.mjs";

const [file, folder, write] = process.argv.slice(2);
const STATES = ["overview", "flame", "tables", "timeline", "source", "capture"];
const [WIDTH, HEIGHT] = [160, 100]; // letters are no longer told apart, so fonts of other machines hardly count
const APART = 48; // of 255, in any channel

const made = {};
for (const colorScheme of ["light", "dark"])
  await withPage({ colorScheme, viewport: { width: 1280, height: 800 } }, async (page) => {
    for (const state of STATES) {
      const name = `${state}-${colorScheme}`;
      await page.goto("about:blank");
      await open(page, `${pathToFileURL(file).href}#${state}`);
      const taken = (await page.screenshot()).toString("base64");
      await page.goto("about:blank");
      const place = join(folder, `${name}.png`);
      const known = write ? "" : (await readFile(place)).toString("base64");
      const found = await page.evaluate(compared, { taken, known, width: WIDTH, height: HEIGHT, apart: APART });
      if (write) await writeFile(place, Buffer.from(found.small, "base64"));
      made[name] = { mean: found.mean, apart: found.apart };
    }
  });
console.log(JSON.stringify(made));

async function compared({ taken, known, width, height, apart }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  const pixels = async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  };
  const now = await pixels(taken);
  const small = canvas.toDataURL("image/png").split(",")[1];
  if (!known) return { small, mean: 0, apart: 0 };
  const before = await pixels(known);
  let [sum, far] = [0, 0];
  for (let i = 0; i < now.length; i += 4) {
    const differences = [0, 1, 2].map((channel) => Math.abs(now[i + channel] - before[i + channel]));
    sum += (differences[0] + differences[1] + differences[2]) / 3;
    if (Math.max(...differences) > apart) far++;
  }
  return { small, mean: sum / (width * height), apart: far / (width * height) };
}
