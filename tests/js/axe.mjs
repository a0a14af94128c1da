// node axe.mjs ADDRESS|FILE: every page of a profile, in light, dark and high contrast, asked by axe-core; prints what it found.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { open, settled, withPage } from "./browser.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const target = process.argv[2];
const address = target.startsWith("http") ? target : pathToFileURL(target).href;
const PAGES = [
  "overview",
  "flame",
  "tables",
  "tables/modules",
  "tables/memory",
  "tables/lines",
  "tables/ranks",
  "tables/grouped",
  "tables/tools",
  "timeline",
  "source",
  "diff",
  "capture",
];
const LOOKS = [
  { colorScheme: "light" },
  { colorScheme: "dark" },
  { colorScheme: "light", contrast: "more" },
  { colorScheme: "dark", contrast: "more" },
];

const found = [];
for (const look of LOOKS)
  await withPage({ ...look, bypassCSP: true }, async (page) => {
    for (const name of PAGES) {
      await page.goto("about:blank");
      await open(page, `${address}#${name}`);
      if (name === "flame") {
        await page.locator(".flame-canvas").focus();
        for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowDown");
        await settled(page);
      }
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      for (const one of violations)
        found.push({
          look: `${look.colorScheme} ${look.contrast ?? ""}`.trim(),
          page: name,
          rule: one.id,
          nodes: one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary}`),
        });
    }
  });
console.log(JSON.stringify(found));
