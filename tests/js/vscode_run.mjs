// node vscode_run.mjs URL PICTURE: in a real VS Code that trusts its folder: profiles a program and a test, compares what came
// out, and opens a broken file. Prints what a person saw, as JSON.

import { fileRow, frameOf, opened, withWorkbench } from "./workbench.mjs";

const [address, picture] = process.argv.slice(2);
const LONG = 240_000; // a program runs under the profiler

await withWorkbench(address, true, picture, async (page, seen) => {
  const broken = await opened(page, "broken.leadline", ".failure");
  seen.broken = await broken.locator(".failure").innerText();
  await closeAll(page);

  await fileRow(page, "program.py").dblclick();
  await page.locator(".view-line").first().waitFor();
  await command(page, "Leadline: Profile This File");
  const program = await frameOf(page, (frame) => frame.locator(".program h1").filter({ hasText: "program.py" }), LONG);
  seen.program = await program.locator(".program h1").innerText();
  await closeAll(page);

  await fileRow(page, "test_program.py").dblclick();
  const lens = page.locator(".codelens-decoration a").filter({ hasText: "Profile this test" });
  await lens.first().waitFor();
  seen.links = await lens.count();
  await lens.first().click();
  const test = await frameOf(page, (frame) => frame.locator(".program h1").filter({ hasText: "pytest" }), LONG);
  seen.test = await test.locator(".program h1").innerText();
  await closeAll(page);

  await fileRow(page, "program.leadline").click(); // opens it too
  await frameOf(page, (frame) => frame.locator(".program h1").filter({ hasText: "program.py" }));
  await fileRow(page, "TestProgram.test_it.leadline").click({ modifiers: ["Control"] });
  await fileRow(page, "TestProgram.test_it.leadline").click({ button: "right" });
  const compare = page.locator(".monaco-menu .action-item").filter({ hasText: "Compare Two Profiles" });
  await compare.waitFor();
  while (await compare.count()) {
    await compare.click().catch(() => {}); // a menu that has just opened takes no click
    await compare.waitFor({ state: "detached", timeout: 2000 }).catch(() => {});
  }
  const comparison = await frameOf(page, (frame) => frame.locator("#page-diff:not([hidden])"), LONG);
  seen.comparison = (await comparison.locator("#page-diff").innerText()).slice(0, 500);
  seen.titles = await page.locator(".tabs-container .tab").evaluateAll((tabs) => tabs.map((tab) => tab.ariaLabel));
  await page.screenshot({ path: picture });
});

async function command(page, name) {
  await page.keyboard.press("F1");
  await page.keyboard.type(name);
  await page
    .locator(".quick-input-list .monaco-list-row")
    .filter({ hasText: name.replace("Leadline: ", "") })
    .first()
    .click();
}

async function closeAll(page) {
  await command(page, "View: Close All Editors");
  await page.locator(".tabs-container .tab").first().waitFor({ state: "detached" });
}
