// node memory.mjs FILE.html: what the table of memory says of compiled programs, and the frame that its largest buffer opens;
// printed as JSON.

import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const said = await withPage({}, async (page, seen) => {
  await open(page, `${pathToFileURL(process.argv[2]).href}#tables`);
  await page
    .getByRole("button", { name: "Memory" })
    .or(page.getByRole("tab", { name: "Memory" }))
    .first()
    .click();
  await settled(page);
  const inside = page.locator("#page-tables .card", { hasText: "Inside jit(" });
  const cards = await inside.evaluateAll((all) => all.map((one) => one.innerText));
  await inside.first().locator(".path").first().click();
  await settled(page);
  return { errors: seen.errors, cards, frame: await page.locator("#page-flame .details h3").innerText() };
});
console.log(JSON.stringify(said));
