// node vscode.mjs URL FILE SYMBOL trust|no-trust PICTURE: opens a profile in a real VS Code in the browser, clicks the frame
// that SYMBOL names, follows a problem back, and prints what a person saw, as JSON. With trust it also profiles the file that
// the click opened, and the test above whose name a link stands.

import { chromium } from "playwright-core";

const [address, file, symbol, trust, picture] = process.argv.slice(2);
const FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update " +
  "--disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader";
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS.split(" ") });
const page = await browser.newPage({ viewport: { width: 1500, height: 900 } });
page.setDefaultTimeout(60_000);
const seen = {};
try {
  await page.goto(address);
  await page.waitForSelector(".monaco-workbench", { timeout: 120_000 });
  const answer = trust === "trust" ? "Yes, I trust the authors" : "No, I don't trust the authors";
  await page.getByRole("button", { name: answer }).click();
  let profile = await opened(file);
  seen.overview = await profile.locator(".program h1").innerText();
  await profile.locator("#tab-flame").click();
  await clickFrame(profile);
  await page.locator(".editor-instance .view-line").first().waitFor();
  seen.tabs = await page
    .locator(".tabs-container .tab")
    .evaluateAll((tabs) => tabs.map((tab) => tab.dataset.resourceName));
  await page.locator(".codelens-decoration a").first().waitFor();
  seen.lenses = await page.locator(".codelens-decoration").allInnerTexts();
  await page.waitForFunction(`(${costs})().length > 0 && (${current})()`);
  seen.line = await page.evaluate(current);
  seen.costs = await page.evaluate(costs);
  await page.screenshot({ path: picture });
  await page.keyboard.press("Control+Shift+M");
  const problem = page.locator(".markers-panel .monaco-list-row").filter({ hasText: "Leadline" });
  await problem.first().waitFor();
  seen.problems = await problem.allInnerTexts();
  await problem.first().click();
  await page.keyboard.press("Control+.");
  const fix = page
    .locator(".action-widget .monaco-list-row, .context-view .action-item")
    .filter({ hasText: "flame graph" });
  await fix.first().click();
  profile = await frameOf(page, (frame) => frame.locator(".details h3"));
  await profile.waitForFunction(() => document.querySelector(".details h3")?.textContent);
  seen.revealed = await profile.locator(".details h3").innerText();
} catch (error) {
  seen.error = String(error);
  await page.screenshot({ path: picture });
} finally {
  console.log(JSON.stringify(seen));
  await browser.close();
}

/** Opens a file of the explorer until the extension, which the workbench starts after itself, shows it. */
async function opened(name) {
  const row = page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: name });
  for (let i = 0; i < 60; i++) {
    await row.first().dblclick();
    const frame = await frameOf(page, (one) => one.locator("#tab-flame"), 15_000);
    if (frame) return frame;
    const close = page.locator(".tabs-container .tab .codicon-close");
    if (await close.count()) await close.first().click();
  }
  throw new Error("no editor of the extension opened the profile");
}

/** The frame of the page in which `wanted` is found. */
async function frameOf(of, wanted, timeout = 60_000) {
  for (const end = Date.now() + timeout; Date.now() < end;) {
    for (const frame of of.frames())
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

/** Moves down the flame graph until the tip says the name, and clicks there. */
async function clickFrame(frame) {
  const canvas = frame.locator(".flame-canvas");
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  for (let y = 10; y < box.height; y += 10) {
    await canvas.hover({ position: { x: 40, y } });
    const tip = frame.locator(".tip b");
    if ((await tip.count()) && (await tip.innerText()).startsWith(symbol)) {
      seen.clicked = await tip.innerText();
      return canvas.click({ position: { x: 40, y } });
    }
  }
  throw new Error(`no frame ${symbol} in the flame graph`);
}

/** In the workbench: the text of the line that the editor's cursor is on. */
function current() {
  const top = document.querySelector(".monaco-editor .current-line")?.parentElement.style.top;
  const lines = [...document.querySelectorAll(".monaco-editor .view-lines .view-line")];
  return (
    lines
      .find((one) => one.style.top === top)
      ?.textContent?.replaceAll("\u00a0", " ")
      .trim() ?? ""
  );
}

/** In the workbench: what stands beside lines. */
function costs() {
  const spans = [...document.querySelectorAll(".monaco-editor .view-line span")];
  return spans.map((span) => getComputedStyle(span, "::after").content).filter((text) => text.includes("%"));
}
