// node stored.mjs ADDRESS: a profile of which no Python says anything: its overview, operators and flame graph, as JSON.

import { settled, withPage } from "./browser.mjs";

const address = process.argv[2];
const observed = await withPage({}, async (page, seen) => {
  await page.goto(address);
  await page.waitForSelector("main");
  await settled(page);
  const o = { overview: await page.locator("#page-overview").innerText() };
  for (const name of ["tables", "capture", "source", "flame"]) {
    await page.locator(`#tab-${name}`).click();
    await settled(page);
    o[name] = await page.locator(`#page-${name}`).innerText();
  }
  const search = page.locator("#page-flame input[type=search]");
  await search.fill("aten::mm");
  await settled(page);
  await search.press("Enter");
  await settled(page);
  o.flame = await page.locator("#page-flame .details").innerText();
  return { ...o, operators: o.tables, errors: seen.errors };
});
console.log(JSON.stringify(observed));
