// node speed.mjs ADDRESS tree|events: how long the page takes for what a person does, in milliseconds, as JSON. A frame is
// counted when the browser has drawn it; `fps` is while zooming or panning without a pause.

import { settled, withPage } from "./browser.mjs";

const [address, what] = process.argv.slice(2);

const said = await withPage({ colorScheme: "light", bypassCSP: true }, async (page, seen) => {
  const made = {};
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const began = Date.now();
  await page.goto(`${address}#${what === "tree" ? "flame" : "timeline"}`);
  await page.waitForFunction(
    (selector) => {
      const canvas = document.querySelector(selector);
      return canvas && canvas.width > 300 && canvas.dataset.drawn;
    },
    what === "tree" ? ".flame-canvas" : ".timeline-canvas",
    { timeout: 120_000, polling: 10 },
  );
  made.first_paint = Date.now() - began;
  // CPU time of the page's process, all its threads, from its start: what other work on the machine hardly changes
  const { metrics } = await session.send("Performance.getMetrics");
  made.first_paint_cpu = Math.round(1000 * (metrics.find(({ name }) => name === "ProcessTime")?.value ?? NaN));
  const frames = (selector, keys) =>
    page.evaluate(
      async ([selector, keys]) => {
        const canvas = document.querySelector(selector);
        canvas.focus();
        const times = [];
        for (let i = 0; i < 60; i++) {
          const key = keys[i % keys.length];
          const start = performance.now();
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          times.push(performance.now() - start);
        }
        times.sort((a, b) => a - b);
        return { fps: (1000 * 2) / times[times.length >> 1], worst: times[times.length - 1] };
      },
      [selector, keys],
    );
  const timed = (act, until) =>
    page.evaluate(
      async ([act, until]) => {
        const start = performance.now();
        new Function(act)();
        while (!new Function(`return ${until}`)()) await new Promise((done) => setTimeout(done, 1));
        const done = performance.now() - start;
        await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
        return done;
      },
      [act, until],
    );
  const round = (value) => Math.round(value * 10) / 10;
  if (what === "tree") {
    const zoom = await frames(".flame-canvas", ["w", "w", "w", "a", "d", "s", "s", "a", "d", "s"]);
    made.zoom_fps = round(zoom.fps);
    made.zoom_worst = round(zoom.worst);
    const search = (text) =>
      timed(
        `const box = document.querySelector("#page-flame input[type=search]"); box.value = ${JSON.stringify(text)};
         box.dispatchEvent(new Event("input", { bubbles: true }));`,
        `document.querySelector(".found").textContent.length > 0`,
      );
    made.search_first = round(await search("aten::op.77"));
    await page.locator("#page-flame input[type=search]").fill("");
    await settled(page);
    made.search = round(await search("forward.12"));
    await page.locator("#page-flame input[type=search]").fill("");
    await settled(page);
    made.bottom_up = round(
      await timed(
        `delete document.querySelector(".flame-canvas").dataset.drawn; document.querySelector(".toggle").click();`,
        `document.querySelector(".flame-canvas").dataset.drawn && document.querySelector(".toggle[aria-pressed=true]")`,
      ),
    );
  } else {
    const pan = await frames(".timeline-canvas", ["w", "w", "d", "d", "a", "w", "d", "a", "s", "s"]);
    made.pan_fps = round(pan.fps);
    made.pan_worst = round(pan.worst);
  }
  if (seen.errors.length) throw new Error(seen.errors.join("\n"));
  return made;
});
console.log(JSON.stringify(said));
