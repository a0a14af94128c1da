// node agree.mjs FILE.html: what a person reads on the pages of a profile: its verdict, step, tables and figures, as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const observed = await withPage({}, async (page, seen) => {
  await open(page, pathToFileURL(process.argv[2]).href);
  const text = (selector) => page.locator(selector).allInnerTexts();
  const shown = (name) => page.locator(`#page-${name}`).innerText();
  const o = {
    overview: await shown("overview"),
    step: await text(".verdict .step-figure .huge"),
    sentence: await text(".verdict h2"),
  };
  await page.locator("#tab-tables").click();
  for (const name of ["operators", "kernels", "modules", "lines", "ranks"]) {
    await page.locator(`#table-${name}`).click();
    await settled(page);
    const cells = (row) => row.evaluateAll((rows) => rows.map((one) => [...one.cells].map((cell) => cell.innerText)));
    o[name] = {
      head: (await text(`#page-${name} thead th`)).map((one) => one.trim()),
      rows: await cells(page.locator(`#page-${name} tbody tr`)),
      names: await page
        .locator(`#page-${name} tbody tr`)
        .evaluateAll((rows) => rows.map((row) => row.querySelector("[title]")?.title ?? row.cells[0].innerText)),
    };
  }
  await page.locator("#tab-capture").click();
  await settled(page);
  o.trust = await shown("capture");
  o.tiles = await text(".tile");
  return { ...o, errors: seen.errors };
});
console.log(JSON.stringify(observed));
