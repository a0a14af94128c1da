// node finding.mjs ADDRESS: from a finding on the overview to its line in the source and to its path, the tree turned over, and a link to
// that opened again; prints what was seen as JSON.

import { open, settled, withPage } from "./browser.mjs";

const observed = await withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page, seen) => {
  const o = {};
  await open(page, process.argv[2]);
  const finding = page.locator(".finding").first();
  o.finding = await finding.innerText();
  await finding.locator("button", { hasText: /:\d+/ }).click();
  await settled(page);
  o.line = await page.locator(".source-lines .selected").innerText();
  o.beside = await page.locator("#page-source .details").innerText();
  await page.locator("#tab-overview").click();
  await finding.locator("button", { hasText: "flame graph" }).click();
  await settled(page);
  o.frame = await page.locator("#page-flame .details h3").innerText();
  o.badge = await page.locator("#page-flame .frame-findings").innerText();
  await page.keyboard.press("i");
  await settled(page);
  await page.locator(".flame-canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown"]) {
    await page.keyboard.press(key);
    await settled(page);
  }
  o.bottomUp = await page.locator("#page-flame .details").innerText();
  o.pressed = await page.locator("#page-flame .toggle[aria-pressed=true]").allInnerTexts();
  await page.locator("#page-flame input[type=search]").fill("aten::");
  await page.locator("#page-flame select[aria-label^=Colour]").selectOption("module");
  await settled(page);
  await page.getByRole("button", { name: "Copy link to this view" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.goto("about:blank");
  await open(page, link);
  o.again = {
    pressed: await page.locator("#page-flame .toggle[aria-pressed=true]").allInnerTexts(),
    search: await page.locator("#page-flame input[type=search]").inputValue(),
    colour: await page.locator("#page-flame select[aria-label^=Colour]").inputValue(),
  };
  return { ...o, errors: seen.errors };
});
console.log(JSON.stringify(observed));
