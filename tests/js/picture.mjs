// node picture.mjs REPORT.html PAGE OUT.png [light|dark]: a picture of one page of a report, as docs/images has them.

import { pathToFileURL } from "node:url";
import { withPage } from "./browser.mjs";

const [file, name, out, colorScheme = "light"] = process.argv.slice(2);
await withPage({ colorScheme, viewport: { width: 1200, height: 720 } }, async (page) => {
  await page.goto(`${pathToFileURL(file).href}#${name}`);
  await page.waitForSelector("main > section:not([hidden])");
  await page.waitForTimeout(300); // boxes are drawn with the next frame
  await page.screenshot({ path: out });
});
