// node folded.mjs FILE.html: what the pages of a window say of a job that was folded, and the tree of the rank that was late: by its button,
// by its row of the heat map, beside all ranks, and by a link; as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const observed = await withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page, seen) => {
  const o = {};
  const address = pathToFileURL(process.argv[2]).href;
  await open(page, `${address}#timeline`);
  o.timeline = await page.locator("#page-timeline").innerText();
  await page.goto("about:blank");
  await open(page, `${address}#overview`);
  const rank = page.locator("#page-flame select[aria-label=Rank]");
  const root = async () => {
    await settled(page);
    return page.locator("#page-flame .details h3").innerText();
  };
  o.offered = await rank.locator("option").allInnerTexts();
  await page.locator(".rank-trees button").click();
  o.alone = await root();
  o.colour = await page.locator("#page-flame select[aria-label^=Colour]").inputValue();
  o.legend = await page.locator("#page-flame .legend").innerText();
  await page.locator("#page-flame input[type=search]").fill("data loading");
  await page.locator("#page-flame input[type=search]").press("Enter");
  await settled(page);
  o.beside = await page.locator("#page-flame .beside-ranks").innerText();
  o.found = await page.locator("#page-flame .found").innerText();
  await page.getByRole("button", { name: "Copy link to this view" }).click();
  o.link = await page.evaluate(() => navigator.clipboard.readText());
  await page.locator("#page-flame input[type=search]").fill("");
  await rank.selectOption("-1");
  o.all = await root();
  await page.locator("#tab-overview").click();
  const map = page.locator(".rank-heat canvas");
  const box = await map.boundingBox();
  const rows = Number(await map.getAttribute("height"));
  const at = (row) => ({ x: 5, y: ((row + 0.5) * box.height) / 8 });
  await map.click({ position: at(2) });
  o.notAlone = await page.locator("#tab-overview").getAttribute("aria-selected");
  await map.hover({ position: at(5) });
  await settled(page);
  o.said = await page.locator(".rank-heat [aria-live]").innerText();
  await map.click({ position: at(5) });
  o.chosen = [await root(), await rank.inputValue(), rows];
  await page.goto("about:blank");
  await open(page, o.link);
  o.again = [await root(), await rank.inputValue()];
  return { ...o, errors: seen.errors };
});
console.log(JSON.stringify(observed));
