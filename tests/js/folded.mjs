// node folded.mjs FILE.html: what the pages of a window say of a job that was folded, as JSON.

import { pathToFileURL } from "node:url";
import { open, withPage } from "./browser.mjs";

const observed = await withPage({}, async (page, seen) => {
  const o = {};
  for (const name of ["timeline", "time"]) {
    await page.goto("about:blank");
    await open(page, `${pathToFileURL(process.argv[2]).href}#${name}`);
    o[name] = await page.locator(`#page-${name}`).innerText();
  }
  return { ...o, errors: seen.errors };
});
console.log(JSON.stringify(observed));
