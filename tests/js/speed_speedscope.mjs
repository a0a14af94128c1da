// node speed_speedscope.mjs FILE: how long speedscope takes to open a profile that was exported for it, to its first drawing, and
// how many frames a second it draws while zooming; the same browser and the same profile as speed.mjs. JSON, milliseconds.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./browser.mjs";

const home = dirname(createRequire(import.meta.url).resolve("speedscope/package.json"));
const viewer = pathToFileURL(join(home, "dist", "release", "index.html")).href;

const said = await withPage({ colorScheme: "light" }, async (page) => {
  await page.goto(viewer);
  await page.waitForSelector("input[type=file]", { state: "attached" });
  const began = Date.now();
  await page.locator("input[type=file]").setInputFiles(process.argv[2]);
  await page.waitForFunction(() => document.title !== "speedscope" && document.querySelector("canvas"), null, {
    polling: 10,
  });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const opened = Date.now() - began;
  const fps = await page.evaluate(async () => {
    const times = [];
    for (let i = 0; i < 60; i++) {
      const key = "wwwadssads"[i % 10];
      const start = performance.now();
      window.dispatchEvent(new KeyboardEvent("keydown", { key, code: `Key${key.toUpperCase()}`, bubbles: true }));
      window.dispatchEvent(new KeyboardEvent("keypress", { key, bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    return (1000 * 2) / times[times.length >> 1];
  });
  return { opened, zoom_fps: Math.round(fps * 10) / 10 };
});
console.log(JSON.stringify(said));
