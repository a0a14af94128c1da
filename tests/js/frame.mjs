// node frame.mjs FILE.html NAME...: searches for each frame in the flame graph and prints what its panel says, as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const [file, ...names] = process.argv.slice(2);
const panels = await withPage({ colorScheme: "light" }, async (page) => {
  await open(page, pathToFileURL(file).href);
  await page.keyboard.press("2");
  await settled(page);
  const found = {};
  for (const name of names) {
    await page.locator("#page-flame input[type=search]").fill(name);
    await settled(page);
    await page.locator("#page-flame input[type=search]").press("Enter");
    await settled(page);
    found[name] = await page.locator(".details").innerText();
  }
  return found;
});
console.log(JSON.stringify(panels));
