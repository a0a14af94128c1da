// How a name is shown in little room, as leadline.names does in Python; both are held to tests/ui/rules.json. Signatures,
// common namespaces and the parent's prefix go first, then the middle; never the end, never a location.

const ENGINE = "autograd::engine::evaluate_function: ";
const COMMON =
  /^(?:void |(?:unsigned )?(?:int|float|bool) )?(?:aten::|\(anonymous namespace\)::|at::native::|c10d::|torch::|pytorch_flash::|cutlass::|cudnn::|cub::|thrust::)*/;
const NAMESPACES = /^(?:[A-Za-z_]\w*::|\(anonymous namespace\)::)+/;
const WRAPPER = /^(?:Kernel2?|kernel|device_kernel|kernel_agent)$/;

const known = new Map<string, string>();
const MOST_KNOWN = 65536;

/** A name without return type, common namespaces, template arguments and signature. */
export function bare(name: string): string {
  let found = known.get(name);
  if (found === undefined) {
    found = stripped(name);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(name, found);
  }
  return found;
}

function stripped(whole: string): string {
  const name = whole.startsWith(ENGINE) ? whole.slice(ENGINE.length) : whole;
  if (name.startsWith("## ") && name.endsWith(" ##")) return name.slice(3, -3) || name; // marked by hand
  const plain = name.replace(COMMON, "");
  if (!plain || plain.startsWith("<")) return name;
  const at = plain.search(/<|(?<=\S)\(/);
  if (at < 0 || !(name.includes("::") || name.startsWith("void ") || /[)>]$/.test(plain))) return plain;
  const head = plain.slice(0, at).trimEnd();
  if (!head || head.startsWith("operator")) return plain;
  if (plain[at] === "<" && WRAPPER.test(head.slice(head.lastIndexOf("::") < 0 ? 0 : head.lastIndexOf("::") + 2))) {
    const inner = firstArgument(plain.slice(at + 1)).replace(NAMESPACES, "");
    return inner.split("<", 1)[0].trim() || head;
  }
  return head;
}

function firstArgument(text: string): string {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    if ("<([".includes(letter)) depth++;
    else if (">)]".includes(letter)) {
      if (!depth) return text.slice(0, i);
      depth--;
    } else if (letter === "," && !depth) return text.slice(0, i);
  }
  return text;
}

/** A module's name below its parent's box: `…attn` of `model.blocks.*.attn` below `model.blocks.*`. */
export function below(name: string, parent: string): string {
  return parent && name.startsWith(`${parent}.`) ? `…${name.slice(parent.length + 1)}` : name;
}

/** A name in two: where room is short the begin gives way, the end stays. A short name is all end. */
export function parted(text: string): [begin: string, end: string] {
  const at = text.length > SHORT ? text.length - END : 0;
  return [text.slice(0, at), text.slice(at)];
}

const SHORT = 20;
const END = 14;

/** `text` in at most `most` characters: the middle goes, two thirds of what stays are the end. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  if (most < 3) return text.slice(text.length - Math.max(most, 0));
  const begin = Math.floor((most - 1) / 3);
  return `${text.slice(0, begin)}…${text.slice(text.length - (most - 1 - begin))}`;
}
