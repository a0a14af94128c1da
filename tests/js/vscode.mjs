// node vscode.mjs URL FILE SYMBOL PICTURE: opens a profile in a real VS Code whose folder is not trusted (where it has one that may
// hold programs), clicks the frame that SYMBOL names, follows a problem back, and prints what a person saw, as JSON.

import { selectedBox, settled } from "./browser.mjs";
import { commands, frameOf, opened, withWorkbench } from "./workbench.mjs";

const [address, file, symbol, picture] = process.argv.slice(2);

const virtual = !new URL(address).searchParams.get("folder").startsWith("/"); // nobody is asked whether that is trusted
await withWorkbench(address, virtual ? null : false, picture, async (page, seen) => {
  let profile = await opened(page, file);
  seen.overview = await profile.locator(".program h1").innerText();
  await profile.locator("#tab-flame").click();
  seen.clicked = await clickFrame(profile);
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
  seen.commands = await commands(page, "Leadline:");
});

/** Finds the frame, notes where it stands, lets go of it and clicks there. */
async function clickFrame(frame) {
  const canvas = frame.locator(".flame-canvas");
  const search = frame.locator("#page-flame input[type=search]");
  await search.fill(symbol);
  await settled(frame);
  await search.press("Enter");
  await settled(frame);
  const name = await frame.locator("#page-flame .details h3").innerText();
  const place = await selectedBox(frame, canvas);
  await search.fill("");
  await canvas.focus();
  await frame.page().keyboard.press("ArrowUp");
  await settled(frame);
  await frame.page().mouse.click(place.x, place.y);
  return name;
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
