// node tour.mjs ADDRESS|FILE: goes through a profile with a trace window as a person would and prints what was seen as JSON.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { open, selectedBox, settled as settledOn, withPage } from "./browser.mjs";

const target = process.argv[2];
const address = target.startsWith("http") ? target : pathToFileURL(target).href;

const observed = await withPage({ colorScheme: "dark" }, async (page, seen) => {
  const settled = () => settledOn(page);
  const o = {};
  const tab = async (name) => {
    await page.locator(`#tab-${name}`).click();
    await settled();
  };
  const panel = (name) => page.locator(`#page-${name} .details`).innerText();
  await open(page, address);
  o.findings = await page.locator(".finding").allInnerTexts();

  await tab("flame");
  const canvas = page.locator(".flame-canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settled();
  o.zoomed = await page.locator("#page-flame .crumbs button").count();
  await page.keyboard.press("+");
  await settled();
  o.minimap = await page.locator("#page-flame .minimap").isVisible();
  await page.keyboard.press("0");
  await page.keyboard.press("/");
  await settled();
  await page.keyboard.type("/aten::(add)?mm /");
  await settled();
  o.found = await page.locator(".found").innerText();
  await page.keyboard.press("Enter");
  await settled();
  o.selected = await panel("flame");
  await page.locator("#page-flame .details button", { hasText: "callers and callees" }).click();
  await settled();
  o.sandwich = await page.locator(".sandwich").innerText();
  await page.locator(".sandwich button").click();
  await page.locator("#page-flame .found + input").fill("/(/");
  await settled();
  o.badPattern = await page.locator(".found").innerText();
  await page.keyboard.press("Escape");
  const asFile = page.waitForEvent("download");
  await page.locator("#page-flame select[aria-label='Save as']").selectOption("SVG");
  o.svg = (await readFile(await (await asFile).path(), "utf8")).slice(0, 4);
  await page.locator("#page-flame .details button", { hasText: "Drop" }).click();
  await settled();
  o.dropped = {
    chips: await page.locator("#page-flame .crumbs .chip").allInnerTexts(),
    address: await page.evaluate(() => location.hash),
  };
  await page.locator("#page-flame .crumbs .chip").click();
  await settled();
  await page.locator("#page-flame select[aria-label^=Colour]").selectOption("heat");
  await page.keyboard.press("r");
  await settled();

  await tab("tables");
  await page.locator("#table-lines").click();
  await settled();
  o.lines = await page.locator("#page-lines tbody tr").allInnerTexts();
  await page.locator("#page-lines tbody tr").first().click();
  await settled();
  o.source = {
    marked: await page.locator(".source-lines .selected").allInnerTexts(),
    panel: await panel("source"),
  };
  await page.locator("#page-source .details button", { hasText: "flame graph" }).click();
  await settled();
  o.fromSource = await page.locator(".found").innerText();

  await tab("timeline");
  o.window = await panel("timeline");
  const timeline = page.locator(".timeline-canvas");
  const press = async (...keys) => {
    for (const key of keys) {
      await page.keyboard.press(key);
      await settled();
    }
  };
  const box = await timeline.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await settled();
  o.range = await panel("timeline");
  await press("Enter", "Escape", "0");
  await timeline.focus();
  await press("ArrowDown");
  o.firstEvent = await panel("timeline");
  await press("PageDown", "ArrowRight", "Enter"); // zoomed to, it is wide enough to be hit
  o.event = await panel("timeline");
  const place = await selectedBox(page, timeline);
  await press("Escape");
  o.letGo = await panel("timeline");
  await page.mouse.click(place.x, place.y);
  await settled();
  o.clickedEvent = await panel("timeline");
  await press("Shift+ArrowRight");
  o.rangeByKeys = await panel("timeline");
  const whatIf = page.locator("#page-timeline button", { hasText: "What if" });
  if (await whatIf.count()) {
    await whatIf.click();
    await settled();
    const choice = page.locator("select[aria-label='Predicted timeline']");
    o.scenarios = await choice.locator("option").allInnerTexts();
    const chosen = page.locator("#page-timeline button.predicted");
    o.first = await chosen.allInnerTexts();
    const other = o.scenarios.find((text) => text.includes(": likely, "));
    await choice.selectOption({ label: other });
    await settled();
    o.beside = await chosen.allInnerTexts();
    await timeline.focus();
    await press("0", "ArrowRight", "PageDown", "PageDown", "PageDown");
    o.predicted = await panel("timeline");
    await press("PageDown");
    o.predictedToo = await panel("timeline");
    while (await chosen.count()) {
      await chosen.first().click();
      await settled();
    }
    o.without = await choice.locator("option").allInnerTexts();
  }
  const download = page.waitForEvent("download");
  await page.locator("#page-timeline select[aria-label='Save as']").selectOption({ label: "Perfetto, Chrome" });
  o.saved = (await download).suggestedFilename();

  // counters stand above the lanes, on their axis: the first lane begins below them
  const high = () => page.locator("#page-timeline .flame-spacer").evaluate((one) => parseFloat(one.style.height));
  o.withCounters = await high();
  await page.locator("#page-timeline .toggle", { hasText: /counter/i }).click();
  await settled();
  o.withoutCounters = await high();
  await page.locator("#page-timeline .toggle", { hasText: /counter/i }).click();
  const canvasBox = await timeline.boundingBox();
  await page.mouse.move(canvasBox.x + canvasBox.width * 0.5, canvasBox.y + 50);
  await settled();
  o.counter = await page.locator("#page-timeline .tip").innerText();
  // search, a note and what is looked at are in the address
  await page.evaluate(() => document.activeElement.blur());
  await press("/");
  await page.keyboard.type("addmm");
  await press("Enter");
  o.searchedEvent = await panel("timeline");
  o.foundEvents = await page.locator("#page-timeline .found").innerText();
  await page.locator("#page-timeline button", { hasText: "Note" }).click();
  await page.keyboard.type("too slow");
  await page.waitForFunction(() => location.hash.includes("too+slow"));
  o.address = await page.evaluate(() => location.hash);
  await page.goto("about:blank");
  await open(page, `${address}${o.address}`);
  o.reopened = {
    note: await page.locator(".note input").inputValue(),
    search: await page.locator("#page-timeline input[type=search]").inputValue(),
    address: await page.evaluate(() => location.hash),
  };

  await tab("diff");
  o.diff = await page.locator("#page-diff").innerText();
  if (await page.locator(".diff-canvas").count()) {
    await page.locator(".diff-canvas").focus();
    await press("ArrowDown", "ArrowDown");
    o.diffSelected = await panel("diff");
  }
  if (await page.locator("#tab-overview").isVisible()) await tab("overview");
  const show = page.locator(".finding button", { hasText: "flame graph" });
  if (await show.count()) {
    await show.first().click();
    await settled();
    o.fromFinding = await panel("flame");
  }
  await page.setViewportSize({ width: 400, height: 800 });
  await tab("overview");
  o.wideOnPhone = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await page.setViewportSize({ width: 640, height: 400 }); // what 200 % of a small screen leaves
  await settled();
  o.wideAt200 = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  return { ...o, seen };
});
console.log(JSON.stringify(observed));
