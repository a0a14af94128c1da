// node changes.mjs ADDRESS|FILE.html: an answer about changes as its reader sees it, and what axe says of it; one JSON object.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const target = process.argv[2];
const address = target.startsWith("http") ? target : pathToFileURL(target).href;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const made = { faults: [] };
for (const colorScheme of ["light", "dark"])
  await withPage({ colorScheme, bypassCSP: true, viewport: { width: 1440, height: 900 } }, async (page, seen) => {
    await open(page, address);
    await page.waitForSelector("section:not([hidden]) .sentence");
    await settled(page);
    const texts = (selector) => page.locator(`section:not([hidden]) ${selector}`).allInnerTexts();
    const widths = (selector) =>
      page
        .locator(`section:not([hidden]) ${selector}`)
        .evaluateAll((found) => found.map((one) => one.getBoundingClientRect().width));
    made.program = await page.locator("h1").innerText();
    made.sentence = (await texts(".sentence"))[0];
    made.bars = await texts(".headline .step-part");
    made.widths = await widths(".headline .step-part");
    made.advice = await texts(".helps .do");
    made.heads = await texts(".card > header h2");
    made.folded = await texts("details summary");
    made.rows = await page
      .locator("table.changes tbody tr")
      .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
    made.strips = await page
      .locator("svg.strip")
      .evaluateAll((found) => found.map((one) => one.getAttribute("aria-label")));
    const details = page.locator("details summary");
    for (let i = 0; i < (await details.count()); i++) await details.nth(i).click();
    const advice = page.locator(".helps .do");
    if (await advice.count()) await advice.first().click();
    await settled(page);
    made.opened = await texts(".help-more code");
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    made.faults.push(
      ...seen.errors,
      ...seen.requests.filter((one) => !one.startsWith("file:") && !one.startsWith(address.split("#")[0])),
      ...violations.map(
        (one) => `${colorScheme} ${one.id}: ${one.nodes[0].target.join(" ")} ${one.nodes[0].failureSummary}`,
      ),
    );
  });
console.log(JSON.stringify(made));
