// node overview.mjs FILE.html: what the overview says, as JSON.

import { pathToFileURL } from "node:url";
import { open, withPage } from "./browser.mjs";

const observed = await withPage({}, async (page, seen) => {
  await open(page, `${pathToFileURL(process.argv[2]).href}#overview`);
  return { text: await page.locator("#page-overview").innerText(), errors: seen.errors };
});
console.log(JSON.stringify(observed));
