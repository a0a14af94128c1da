"""Which kernel of compiled code needs what which other has written, read from the code that torch.compile generated.

The function `call` of a generated module is a list of statements: buffers are made, given other names (`reuse`), and
handed to kernels, generated ones and those of libraries. A kernel depends on whoever wrote a buffer last that it reads
or writes on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

MOST_CALLS = 2_000
_GENERATED = ("cpp_fused", "triton_")
_LIBRARY = "extern_kernels"
_OPERATORS = "torch.ops."
_WRITTEN = re.compile(r"^(in_)?out_ptr|^out")


def graph_of(source: str) -> dict[str, list[object]] | None:
    """`calls`: names of what `call` launches, in order; `edges`: numbers of calls, from whoever writes to whoever needs
    it, one pair behind the other. None where there is no such function, or it launches too much."""
    module = ast.parse(source)
    function = next((one for one in ast.walk(module) if isinstance(one, ast.FunctionDef) and one.name == "call"), None)
    if function is None:
        return None
    written_by = _signatures(module, source)
    calls: list[object] = []
    edges: list[object] = []
    same: dict[str, str] = {}
    writer: dict[str, int] = {}

    def root(name: str) -> str:
        while name in same:
            name = same[name]
        return name

    for target, value in _statements(function.body):
        if isinstance(value, ast.Name | ast.Subscript) and target and (first := _names(value)):
            if first[0] != target:
                same[target] = first[0]  # another name for it, or a part of it
            continue
        if not isinstance(value, ast.Call):
            continue
        name = _launched(value.func)
        if not name:
            if target:
                same.pop(target, None)
                writer.pop(target, None)
            continue
        reads, writes = _reads_and_writes(value, written_by.get(name))
        if target:
            same.pop(target, None)
            writes.append(target)
        needed = {writer[one] for one in map(root, [*reads, *writes]) if one in writer}
        for source_call in sorted(needed):
            edges += [source_call, len(calls)]
        writer.update(dict.fromkeys(map(root, writes), len(calls)))
        calls.append(name)
        if len(calls) > MOST_CALLS:
            return None
    return {"calls": calls, "edges": edges} if calls else None


def _statements(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """(name that is assigned to, value) in order, also of what stands in `with`."""
    for one in body:
        if isinstance(one, ast.With | ast.If):
            yield from _statements(one.body)
        elif isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            yield one.targets[0].id, one.value
        elif isinstance(one, ast.Expr):
            yield "", one.value


def _launched(function: ast.expr) -> str:
    """Name of the kernel or operator that is called; empty for what only makes or describes a buffer."""
    text = ast.unparse(function)
    if text.startswith(_GENERATED):
        return text.removesuffix(".run")
    if text.startswith(f"{_LIBRARY}."):
        return text.removeprefix(f"{_LIBRARY}.")
    if text.startswith(_OPERATORS):
        return text.removeprefix(_OPERATORS).split(".")[1]
    return ""


def _reads_and_writes(call: ast.Call, written: list[bool] | None) -> tuple[list[str], list[str]]:
    """Names of buffers. A kernel whose parameters are not known is taken to write the last one."""
    reads: list[str] = []
    writes: list[str] = []
    outputs = [one.value for one in call.keywords if one.arg == "out"]
    for at, argument in enumerate(call.args):
        names = _names(argument)
        (writes if written is not None and at < len(written) and written[at] else reads).extend(names)
    for one in call.keywords:
        (writes if one.value in outputs else reads).extend(_names(one.value))
    return reads, writes


def _names(expression: ast.expr) -> list[str]:
    called = {id(one.func) for one in ast.walk(expression) if isinstance(one, ast.Call)}
    return [one.id for one in ast.walk(expression) if isinstance(one, ast.Name) and id(one) not in called]


def _signatures(module: ast.Module, source: str) -> dict[str, list[bool]]:
    """Of every generated kernel which of its parameters it writes: by their C++ types, or by their names in Triton."""
    found = {}
    for one in module.body:
        if not (
            isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and isinstance(one.targets[0], ast.Name)
        ):
            continue
        name = one.targets[0].id
        if not name.startswith(_GENERATED) or not one.value.args:
            continue
        first = one.value.args[0]
        if isinstance(first, ast.List):
            types = [str(item.value) for item in first.elts if isinstance(item, ast.Constant)]
            found[name] = ["*" in text and "const" not in text for text in types]
        elif told := re.search(rf"def {re.escape(name)}\(([^)]*)\)", source):
            found[name] = [_WRITTEN.match(part.strip()) is not None for part in told[1].split(",")]
    return found
