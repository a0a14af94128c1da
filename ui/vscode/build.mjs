// node vscode/build.mjs: bundles the extension and packs it as build/leadline.vsix. The same sources give the same bytes.

import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { zip } from "./zip.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const output = join(root, "build", "leadline.vsix");

const shared = {
  absWorkingDir: here,
  outdir: join(here, "dist"),
  bundle: true,
  minify: true,
  write: false,
  target: "es2022",
  legalComments: "inline",
  logLevel: "warning",
};
const extension = await build({
  ...shared,
  entryPoints: { extension: "extension.ts" },
  format: "cjs",
  platform: "browser", // the same file runs in the web's extension host, where asking.ts finds no Node
  external: ["vscode", "child_process"],
});
const page = await build({
  ...shared,
  entryPoints: { page: "page/main.ts" },
  format: "iife",
  jsx: "automatic",
  jsxImportSource: "preact",
});

const manifest = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
const version = /(\d+\.\d+\.\d+)/.exec(await readFile(join(root, "python/leadline/_version.py"), "utf8"));
manifest.version = version[1];

const files = {
  "[Content_Types].xml": contentTypes(),
  "extension.vsixmanifest": vsixManifest(manifest),
  "extension/package.json": JSON.stringify(manifest, null, 2) + "\n",
  "extension/readme.md": await readFile(join(here, "README.md")),
  "extension/LICENSE.txt": await readFile(join(root, "LICENSE")),
  "extension/icon.png": await readFile(join(here, "icon.png")),
};
for (const file of [...extension.outputFiles, ...page.outputFiles])
  files[`extension/dist/${file.path.slice(file.path.lastIndexOf("/") + 1)}`] = file.contents;
await mkdir(dirname(output), { recursive: true });
const packed = zip(files);
await writeFile(output, packed);
console.log(`build/leadline.vsix: ${packed.length} bytes`);

function contentTypes() {
  const types = {
    json: "application/json", js: "application/javascript", css: "text/css", md: "text/markdown", txt: "text/plain",
    vsixmanifest: "text/xml", png: "image/png",
  }; // prettier-ignore
  const lines = Object.entries(types).map(
    ([ending, type]) => `<Default Extension=".${ending}" ContentType="${type}"/>`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${lines.join("")}</Types>
`;
}

function vsixManifest({
  name,
  publisher,
  version,
  displayName,
  description,
  keywords,
  categories,
  engines,
  extensionKind,
}) {
  const text = (value) => String(value).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id="${text(name)}" Version="${text(version)}" Publisher="${text(publisher)}"/>
<DisplayName>${text(displayName)}</DisplayName>
<Description xml:space="preserve">${text(description)}</Description>
<Tags>${text(keywords.join(","))}</Tags>
<Categories>${text(categories.join(","))}</Categories>
<GalleryFlags>Public</GalleryFlags>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value="${text(engines.vscode)}"/>
<Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="${text(extensionKind.join(","))}"/>
</Properties>
<License>extension/LICENSE.txt</License>
<Icon>extension/icon.png</Icon>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Icons.Default" Path="extension/icon.png" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/readme.md" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
</Assets>
</PackageManifest>
`;
}
