// node picture.mjs REPORT.html PAGE OUT.png [light|dark]: a picture of one page of a report, as docs/images has them.

import { pathToFileURL } from "node:url";
import { open, withPage } from "./browser.mjs";

const [file, name, out, colorScheme = "light"] = process.argv.slice(2);
await withPage({ colorScheme, viewport: { width: 1200, height: 720 } }, async (page) => {
  await open(page, `${pathToFileURL(file).href}#${name}`);
  await page.screenshot({ path: out });
});
