// node live.mjs ADDRESS: a page of `leadline view --live` whose run grows each time the page asks, and ends; prints what was seen.

import { settled, withPage } from "./browser.mjs";

const address = process.argv[2];
const observed = await withPage({}, async (page, seen) => {
  const o = { looks: [] };
  const calls = () => page.locator(".tile", { hasText: "Operator calls" }).locator(".big").textContent();
  const live = page.locator(".tools .live");
  const look = async () => Number(await live.getAttribute("data-look"));
  await page.goto(address);
  await page.waitForSelector("main");
  await settled(page);
  o.banner = await page.locator(".banner").count();
  o.says = await live.innerText();
  o.looks.push(await calls());
  await page.keyboard.press("2");
  await page.locator("#page-flame input[type=search]").fill("layer");
  await settled(page);
  await page.locator("#page-flame input[type=search]").press("Enter");
  await page.locator("#page-flame canvas.flame-canvas, .flame-canvas").first().press("Enter");
  await settled(page);
  o.zoomed = await page.locator("nav.crumbs").innerText();
  await page.waitForFunction((old) => Number(document.querySelector(".tools .live").dataset.look) > old, await look());
  await settled(page);
  o.zoomedLater = await page.locator("nav.crumbs").innerText();
  o.search = await page.locator("#page-flame input[type=search]").inputValue();
  o.page = await page.evaluate(() => document.querySelector("main > section:not([hidden])").id);
  const asked = page.waitForResponse((response) => response.url().endsWith("/now"));
  await live.click();
  o.held = await live.innerText();
  const before = await look();
  await asked;
  await settled(page);
  o.unchanged = (await look()) === before;
  await live.click();
  await page.waitForFunction(() => document.querySelector(".tools .live").textContent === "Ended");
  await page.keyboard.press("Escape");
  await page.locator("#tab-overview").click();
  await settled(page);
  o.looks.push(await calls());
  o.errors = seen.errors;
  return o;
});
console.log(JSON.stringify(observed));
