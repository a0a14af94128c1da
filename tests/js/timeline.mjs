// node timeline.mjs FILE: the timeline of a page that was made with predictions; prints what is shown at once as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const observed = await withPage({}, async (page, seen) => {
  await open(page, `${pathToFileURL(process.argv[2]).href}#timeline`);
  await settled(page);
  return { predictions: await page.locator("#page-timeline button.predicted").allInnerTexts(), errors: seen.errors };
});
console.log(JSON.stringify(observed));
