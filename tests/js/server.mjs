// node server.mjs ADDRESS: a page of `leadline view` whose server is slow to analyse, and then lost; prints what was seen as JSON.

import { settled, withPage } from "./browser.mjs";

const address = process.argv[2];
const observed = await withPage({}, async (page) => {
  const o = {};
  let answer;
  const asked = new Promise((done) => (answer = done));
  await page.route("**/report/0", async (route) => {
    await asked;
    await route.continue();
  });
  await page.goto(address);
  await page.waitForSelector("main [role=status][aria-busy=true]");
  o.waiting = await page.locator("#page-overview").innerText();
  answer();
  await settled(page);
  o.answered = await page.locator("#page-overview").innerText();
  await page.route("**/source*", (route) => route.abort());
  await page.locator("#tab-source").click();
  await settled(page);
  o.lost = await page.locator("#page-source").innerText();
  await page.unroute("**/report/0");
  await page.route("**/report/0", (route) => route.abort());
  await page.goto("about:blank");
  await page.goto(address);
  await page.waitForSelector("main");
  await settled(page);
  o.banner = await page.locator(".banner").allInnerTexts();
  o.withoutPython = await page.locator("#page-overview").innerText();
  await page.route("**/profile/0", (route) => route.abort());
  await page.goto("about:blank");
  await page.goto(address);
  await page.waitForSelector(".failure");
  o.failed = await page.locator(".failure").innerText();
  return o;
});
console.log(JSON.stringify(observed));
