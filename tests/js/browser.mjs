// Headless Chromium for tests: no sandbox (tests may run as root), no background traffic, nothing but files is loaded. A test
// waits for what the page says of itself (`settled`, attributes such as data-drawn), never for a time: machines differ.

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const PATIENCE_MS = 120_000; // for a machine that does ten things at once

export async function withPage(options, work) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS, timeout: PATIENCE_MS });
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const seen = { errors: [], dialogs: [], requests: [] };
    page.on("pageerror", (error) => seen.errors.push(String(error)));
    page.on("console", (message) => {
      if (message.text().includes("GL Driver Message")) return; // software rendering thinks aloud
      if (["error", "warning"].includes(message.type())) seen.errors.push(message.text());
    });
    page.on("dialog", (dialog) => {
      seen.dialogs.push(dialog.message());
      dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!request.url().startsWith("data:")) seen.requests.push(request.url());
    });
    return await work(page, seen);
  } finally {
    await browser.close();
  }
}

/** Opens the page of a profile and waits until it is drawn. */
export async function open(page, address) {
  await page.goto(address);
  await page.waitForSelector("main");
  await settled(page);
}

/** Until nothing in the document has changed for three frames and no part of it is busy. Works in frames too. */
export function settled(page) {
  return page.evaluate(
    () =>
      new Promise((done) => {
        let quiet = 0;
        const watch = new MutationObserver(() => (quiet = 0));
        watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        const look = () => {
          if (document.querySelector("[aria-busy=true]")) quiet = 0;
          if (quiet++ < 3) requestAnimationFrame(() => setTimeout(look));
          else done(watch.disconnect());
        };
        look();
      }),
  );
}

/** Where the box stands that is selected in a drawing, in pixels of the page: its middle. */
export async function selectedBox(page, canvas) {
  const place = await canvas.getAttribute("data-selected");
  if (!place) throw new Error("nothing that can be seen is selected");
  const [x, y, width, height] = place.split(" ").map(Number);
  const bounds = await canvas.boundingBox();
  return { x: bounds.x + x + width / 2, y: bounds.y + y + height / 2 };
}
