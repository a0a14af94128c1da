// `openProfile(bytes)`: a `.leadline` file, from anyone, as a checked Profile, or one ProfileFileError. The same reader
// serves the self-contained page, the local server's page and VS Code; see docs/file-format.md.

import { checkTables } from "./check";
import { printable, ProfileFileError } from "./errors";
import { emptyColumn, readColumn } from "./npy";
import { Profile, type Meta } from "./profile";
import { FORMAT_VERSION, OPTIONAL_TABLES, TABLES, type Tables } from "./schema.generated";
import { Archive, LIMITS } from "./zip";

const OPTIONAL = new Set<string>(OPTIONAL_TABLES);
const OBJECTS = ["program", "asked", "available", "cost", "clock", "host", "kernel"];

export async function openProfile(bytes: Uint8Array): Promise<Profile> {
  const archive = new Archive(bytes);
  if (!archive.has("meta.json"))
    throw new ProfileFileError("The file is a ZIP archive but not a Leadline profile: it has no meta.json.");
  const meta = parsedMeta(await archive.read("meta.json"));
  const names = Object.keys(TABLES) as (keyof Tables)[];
  const tables = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await table(archive, name)])));
  checkTables(tables as Tables);
  return new Profile(tables as Tables, meta);
}

async function table(archive: Archive, name: keyof Tables): Promise<object> {
  const columns = TABLES[name];
  const absent = OPTIONAL.has(name) && columns.every(([column]) => !archive.has(`${name}.${column}.npy`));
  const read = columns.map(async ([column, dtype]) => {
    if (absent) return [column, emptyColumn(dtype)];
    const part = `${name}.${column}.npy`;
    return [column, readColumn(part, await archive.read(part), dtype)];
  });
  return Object.fromEntries(await Promise.all(read));
}

function parsedMeta(data: Uint8Array): Meta {
  const wrong = (what: string) => new ProfileFileError(`The file cannot be read: its part meta.json ${what}.`);
  if (data.length > LIMITS.meta) throw wrong(`is larger than ${LIMITS.meta} bytes`);
  let meta: unknown;
  try {
    meta = JSON.parse(new TextDecoder().decode(data));
  } catch {
    throw wrong("is not JSON");
  }
  if (!isObject(meta)) throw wrong("is not a JSON object");
  const format = meta.format;
  const version = isObject(format) && format.name === "leadline" ? format.version : undefined;
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
    throw new ProfileFileError("The file is not a Leadline profile: its meta.json does not say format leadline.");
  if (version > FORMAT_VERSION) {
    const by = typeof meta.leadline === "string" && meta.leadline ? printable(meta.leadline, 30) : "";
    throw new ProfileFileError(
      `The file is of format ${version}, written by ${by ? `leadline ${by}` : "a newer leadline"}; this viewer reads ` +
        `formats up to ${FORMAT_VERSION}. Please update it.`,
    );
  }
  for (const name of OBJECTS) if (!isObject(meta[name])) meta[name] = {};
  if (!Array.isArray(meta.processes)) meta.processes = [];
  return meta as unknown as Meta;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
