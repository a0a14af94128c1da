// node page.mjs FILE.html: opens a report as a user would, uses it, and prints what was seen as one JSON object.

import { pathToFileURL } from "node:url";
import { open, selectedBox, settled as settledOn, withPage } from "./browser.mjs";

const url = pathToFileURL(process.argv[2]).href;
const observed = await withPage({ colorScheme: "light" }, async (page, seen) => {
  await open(page, url);
  if (seen.errors.length) throw new Error(seen.errors.join("\n"));
  const o = { title: await page.title() };
  const text = (selector) => page.locator(selector).allInnerTexts();
  const visiblePage = () => page.evaluate(() => document.querySelector("main > section:not([hidden])").id);
  const details = () => page.locator(".details").innerText();
  const settled = () => settledOn(page);
  const press = async (...keys) => {
    for (const key of keys) {
      await page.keyboard.press(key);
      await settled();
    }
  };
  const tab = (name) => page.locator(`#tab-${name}`).click().then(settled);
  const table = (name) => page.locator(`#table-${name}`).click().then(settled);
  const drawn = () =>
    page.evaluate(() => {
      // whether the canvas shows anything, and in which size
      const canvas = document.querySelector(".flame-boxes");
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
      const colours = new Set();
      for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] === 255) colours.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
      return { width: canvas.width, colours: colours.size };
    });
  /** Goes down to a box by keys, up again, and clicks it. */
  const clickBox = async (rows) => {
    const canvas = page.locator(".flame-canvas");
    await canvas.focus();
    for (let row = 0; row <= rows; row++) await press("ArrowDown");
    const place = await selectedBox(page, canvas);
    await press("ArrowUp");
    await page.mouse.click(place.x, place.y);
    await settled();
  };

  o.overview = {
    page: await visiblePage(),
    places: await text("#page-overview .place"),
    steps: await text("#page-overview .steps"),
  };

  await press("2");
  o.flame = {
    page: await visiblePage(),
    hash: await page.evaluate(() => location.hash),
    drawn: await drawn(),
    legend: await text("#page-flame .legend"),
    start: await details(),
    toggles: await page.locator("#page-flame .toggle[aria-pressed=true]").allInnerTexts(),
  };
  await clickBox(3);
  o.clicked = await details();
  await press("ArrowDown");
  o.below = await details();
  await press("Enter");
  o.zoomed = await text(".crumbs button");
  await press("Escape");
  o.unzoomed = await page.locator(".crumbs").isHidden();
  await press("h", "l");
  o.unfolded = {
    toggles: await page.locator("#page-flame .toggle[aria-pressed=true]").allInnerTexts(),
    drawn: await drawn(),
  };
  await press("h", "l", "i");
  await clickBox(1);
  o.bottomUp = await details();
  await press("i", "/");
  await page.keyboard.type("linear");
  await settled();
  o.searched = await text(".found");
  await press("Enter");
  o.nextFound = await details();
  await page.locator(".page:not([hidden]) input[type=search]").fill("no such frame");
  await settled();
  o.nothingFound = await text(".found");
  await press("Escape", "m");
  o.nextMetric = await page.locator("#page-flame select[aria-label^=Width]").inputValue();
  await press("t");
  o.dark = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--theme").trim());

  await tab("tables");
  const names = () => text("#page-operators tbody code");
  o.operators = { page: await visiblePage(), names: await names(), first: (await text("#page-operators tbody tr"))[0] };
  if (o.operators.names.length) {
    await page.locator("#page-operators thead button", { hasText: "Calls" }).click();
    await settled();
    o.byCalls = await names();
    await page.locator("#page-operators thead button", { hasText: "Operator" }).click();
    await settled();
    o.byName = await names();
    await page.locator("#page-operators input[type=search]").fill("linear");
    await settled();
    o.filtered = await names();
    await page.locator("#page-operators tbody tr").first().click();
    await settled();
    o.afterOperator = {
      page: await visiblePage(),
      search: await page.locator("#page-flame input[type=search]").inputValue(),
    };
  }

  await press("Escape", "Escape");
  await page.evaluate(() => document.activeElement.blur());
  await tab("tables");
  await table("modules");
  o.modules = await text("#page-modules tbody tr");
  await table("memory");
  o.memory = { page: await visiblePage(), text: await page.locator("#page-memory").innerText() };
  if (await page.locator("#page-memory .path").count()) {
    await page.locator("#page-memory .path").first().click();
    await settled();
    o.fromMemory = {
      page: await visiblePage(),
      metric: await page.locator("#page-flame select[aria-label^=Width]").inputValue(),
      crumbs: await text(".crumbs button"),
    };
  }
  await page.evaluate(() => document.activeElement.blur());
  await tab("capture");
  o.capture = await page.locator("#page-capture").innerText();
  o.run = {
    tiles: await text(".tile"),
    split: await text(".split-bar"),
    commands: await text("#page-capture .commands code"),
  };
  await press("?");
  o.help = await page.locator("dialog[open]").innerText();
  await press("Escape", "1");
  if (await page.locator("#page-overview .path").count()) {
    await page.locator("#page-overview .path").first().click();
    await settled();
    o.fromPath = { page: await visiblePage(), details: await details() };
  }

  o.made = await page.evaluate(() => ({
    // what the document consists of, beyond what the page itself makes
    scripts: document.scripts.length,
    images: document.images.length,
    links: document.links.length,
    frames: document.querySelectorAll("iframe, object, embed").length,
    polluted: Object.keys(Object.prototype).length,
  }));
  o.wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await page.setViewportSize({ width: 400, height: 800 });
  await settled();
  o.wideOnPhone = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  return { ...o, seen };
});
console.log(JSON.stringify(observed));
