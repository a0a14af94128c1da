// Headless Chromium for tests: no sandbox (tests may run as root), no background traffic, nothing but files is loaded.

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

export async function withPage(options, work) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
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
