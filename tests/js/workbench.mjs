// A real VS Code in headless Chromium: opening it, its explorer, and the frames in which the extension's pages are.

import { chromium } from "playwright-core";

const FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update " +
  "--disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader";

/** `trusted`: the answer to the question whether the folder is; null where none is asked. Runs `work` with the workbench's page; prints what it has put into `seen` as JSON, with the error that ended it if one did. */
export async function withWorkbench(address, trusted, picture, work) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS.split(" ") });
  const page = await browser.newPage({ viewport: { width: 1500, height: 900 } });
  page.setDefaultTimeout(60_000);
  const seen = {};
  try {
    await page.goto(address);
    await page.waitForSelector(".monaco-workbench", { timeout: 120_000 });
    const answer = trusted ? "Yes, I trust the authors" : "No, I don't trust the authors";
    if (trusted !== null) await page.getByRole("button", { name: answer }).click();
    await work(page, seen);
  } catch (error) {
    seen.error = String(error);
    await page.screenshot({ path: picture }).catch(() => {});
  } finally {
    console.log(JSON.stringify(seen));
    await browser.close();
  }
}

/** A row of the explorer. */
export function fileRow(page, name) {
  return page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: name }).first();
}

/** Opens a file of the explorer until the extension, which the workbench starts after itself, shows it. */
export async function opened(page, name, wanted = "#tab-flame") {
  for (let i = 0; i < 60; i++) {
    await fileRow(page, name).dblclick();
    const frame = await frameOf(page, (one) => one.locator(wanted), 15_000);
    if (frame) return frame;
    const close = page.locator(".tabs-container .tab .codicon-close");
    if (await close.count()) await close.first().click();
  }
  throw new Error("no editor of the extension opened the profile");
}

/** The frame of the page in which `wanted` is found. */
export async function frameOf(page, wanted, timeout = 60_000) {
  for (const end = Date.now() + timeout; Date.now() < end;) {
    for (const frame of page.frames())
      if (
        await wanted(frame)
          .count()
          .catch(() => 0)
      )
        return frame;
    if (await page.getByText("Open Anyway").count()) return null;
    await page.waitForTimeout(250);
  }
  return null;
}

/** Names of the commands that the palette offers for a text. */
export async function commands(page, text) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").first().fill(`>${text}`);
  const rows = page.locator(".quick-input-list .monaco-list-row .monaco-icon-label:has-text('" + text + "')");
  await rows.first().waitFor();
  const names = (await rows.allInnerTexts()).map((name) => name.split("\n")[0].trim());
  await page.keyboard.press("Escape");
  return names;
}
