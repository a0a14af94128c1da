// node words.mjs FILE.html NAME: selects a frame in the flame graph and prints its panel, the tooltips there, and what the
// page on the capture says of the metrics, as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const [file, name] = process.argv.slice(2);
const said = await withPage({ colorScheme: "light" }, async (page, seen) => {
  await open(page, pathToFileURL(file).href);
  await page.keyboard.press("2");
  await settled(page);
  const search = page.locator("#page-flame input[type=search]");
  await search.fill(name);
  await settled(page);
  await search.press("Enter");
  await settled(page);
  const titles = (selector) =>
    page.locator(selector).evaluateAll((all) => Object.fromEntries(all.map((one) => [one.textContent, one.title])));
  return {
    errors: seen.errors,
    panel: await page.locator(".details").innerText(),
    titles: await titles(".details .costs th[title]"),
    meanings: await page.locator(".meanings").evaluateAll((all) => all.map((one) => one.textContent).join(" ")),
  };
});
console.log(JSON.stringify(said));
