// node compare.mjs ADDRESS: the comparison of `leadline view BEFORE AFTER`, as its text; prints it as JSON.

import { settled, withPage } from "./browser.mjs";

const address = process.argv[2];
const observed = await withPage({}, async (page) => {
  await page.goto(`${address}#diff`);
  await page.locator("table.judged").waitFor();
  await settled(page);
  return { step: await page.locator("table.judged").innerText(), all: await page.locator("#page-diff").innerText() };
});
console.log(JSON.stringify(observed));
