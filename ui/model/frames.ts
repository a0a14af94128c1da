// What a frame is called and whose code it is. Rules that Python has too (analysis/origin.py, analysis/layers.py): both are
// tested against tests/ui/rules.json.

import { FrameKindNames } from "./schema.generated";

/** Kind of the nodes that a report of bounded size draws together; no file that a run wrote has it. */
export const PRUNED = "pruned";
const PRUNED_NUMBER = 255;

/** A kind that this release does not know is shown by its number. */
export function kindName(number: number): string {
  return FrameKindNames[number] ?? (number === PRUNED_NUMBER ? PRUNED : `kind ${number}`);
}

const FRAMEWORKS = new Set(
  (
    "torch torchvision torchaudio torchgen functorch triton nvidia cupy jax jaxlib flax optax tensorflow keras numpy " +
    "scipy leadline pytest _pytest pluggy"
  ).split(" "),
);
const INSTALLED = /(?:^|\/)(?:site|dist)-packages\/([^/]+)/;
const STANDARD_LIBRARY = /(?:^|\/)lib(?:64)?\/python\d+(?:\.\d+)?t?\/(.*)/s;
const OWN_CODE = /(?:^|\/)(?:python\/leadline\/|leadline\/(?:capture\/|_autostart\.py$|_native))/;
const DEMO = /(?:^|\/)leadline\/demo\/[^/]+\.py$/;

/** The larger the number, the more a user can do about it. */
export enum Origin {
  runtime = 0,
  framework = 1,
  package = 2,
  user = 3,
}

export function origin(file: string): Origin {
  const path = file.replaceAll("\\", "/");
  if (!path || path.startsWith("<frozen ") || path.startsWith("<eval_with_key>")) return Origin.runtime;
  if (["<string>", "<built-in>", "~"].includes(path)) return Origin.runtime;
  if (DEMO.test(path)) return Origin.user;
  const installed = INSTALLED.exec(path);
  if (installed) {
    const name = installed[1].replace(/\.py$/, "").toLowerCase();
    return FRAMEWORKS.has(name) ? Origin.framework : Origin.package;
  }
  if (OWN_CODE.test(path)) return Origin.framework;
  return STANDARD_LIBRARY.test(path) ? Origin.runtime : Origin.user;
}

export function isLibrary(file: string): boolean {
  return origin(file) !== Origin.user;
}

const DISPATCH =
  /^(?:c10::(?:Dispatcher|KernelFunction|BoxedKernel|OperatorHandle|TypedOperatorHandle|impl::(?:wrap_kernel|make_boxed|call_functor|BoxedKernelWrapper))|at::_ops::\w+::(?:call|redispatch)$|at::redispatch::|torch::(?:autograd::VariableType|ADInplaceOrView|TraceType)::|at::(?:functorch::)?\{anonymous\}::wrapper_|torch::autograd::TypeError_to_NotImplemented_|pybind11::cpp_function::)/;

/** Whether a native function only finds and calls another one; as `is_dispatch` of analysis/origin.py. */
export function isDispatch(name: string): boolean {
  return DISPATCH.test(name);
}

/** The part of the path that names library code: from its package on; empty for code that was not installed. */
export function packagePath(file: string): string {
  const path = file.replaceAll("\\", "/");
  const installed = INSTALLED.exec(path);
  if (installed) return path.slice(path.indexOf(installed[1], installed.index + installed[0].indexOf("-packages/")));
  return STANDARD_LIBRARY.exec(path)?.[1] ?? "";
}

/** `h.*.mlp` for `h.3.mlp`: the name that numbered layers share. */
export function foldedName(name: string): string {
  return name.replace(/(^|\.)\d+(?=\.|$)/g, "$1*");
}

export function baseName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

/** Without the name of autograd's engine, which says nothing that the phase does not. */
export function operatorName(name: string): string {
  return name.replace(/^autograd::engine::evaluate_function: /, "");
}

/** How a file is shown: the user's relative to `base` or by the shortest end that no other user file shares; others from
 * their package on. As python/leadline/report/source.py. */
export function shortNames(files: Iterable<string>, base: string): Map<string, string> {
  const distinct = [...new Set(files)].sort();
  const folder = base.replace(/\/+$/, "") + "/";
  const below = (file: string) =>
    base && file.startsWith(folder) && origin(file) === Origin.user ? file.slice(folder.length) : "";
  const outside = distinct.filter((file) => origin(file) === Origin.user && !below(file));
  const ends = new Map<string, number>();
  for (const file of outside) for (const end of endsOf(file)) ends.set(end, (ends.get(end) ?? 0) + 1);
  const unique = new Map(outside.map((file) => [file, endsOf(file).find((end) => ends.get(end) === 1) ?? file]));
  return new Map(distinct.map((file) => [file, unique.get(file) || below(file) || packagePath(file) || file]));
}

const MOST_FOLDERS = 16;

function endsOf(file: string): string[] {
  const parts = file.split("/");
  const made = [];
  for (let i = parts.length - 1; i >= Math.max(parts.length - MOST_FOLDERS, 0); i--)
    made.push(parts.slice(i).join("/"));
  return parts[parts.length - 1].startsWith("__") && made.length > 1 ? made.slice(1) : made;
}
