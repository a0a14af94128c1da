#!/usr/bin/env python3
"""Check every #include of native/ and every import of python/leadline against tools/import_table.py.

python tools/check_imports.py        exit 1 and one sentence per violation
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import import_table as table

ROOT = Path(__file__).resolve().parent.parent
NATIVE_SUFFIXES = {".h", ".c", ".cc", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check the import table.")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    root = parser.parse_args(argv).root
    found = [*native_problems(root / "native"), *python_problems(root / "python/leadline")]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"imports: {len(found)} violations")
    return 1 if found else 0


# ---------------------------------------------------------------- native


def native_problems(native: Path) -> Iterator[str]:
    for path in sorted(path for path in native.rglob("*") if path.suffix in NATIVE_SUFFIXES):
        name = path.relative_to(native).as_posix()
        if name.startswith("include/"):
            continue
        folder = _native_folder(name)
        if folder not in table.NATIVE:
            yield f"native/{name}: the folder {folder!r} is not in the import table; add it to tools/import_table.py."
            continue
        test = path.stem.endswith("_test")
        for mark, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            problem = _native_problem(native, name, folder, test, mark, target)
            if problem:
                yield f"native/{name}: {problem}"


def _native_folder(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("providers", "backends") and len(parts) > 2 else parts[0]


def _native_problem(native: Path, name: str, folder: str, test: bool, mark: str, target: str) -> str | None:
    if target.startswith("leadline/"):
        allowed = folder in table.PUBLIC_HEADER_USERS or test
        return None if allowed else f"{folder} may not include the public header <{target}>."
    if mark == '"' or (native / target).is_file():
        if not (native / target).is_file():
            return f'"{target}" is not a path below native/; write it from there.'
        other = _native_folder(target)
        allowed_folders = table.NATIVE[folder] | {folder} | (table.NATIVE_TESTS if test else set())
        return None if other in allowed_folders else f'{folder} may not include "{target}" ({other}).'
    for prefixes, places in table.NATIVE_FOREIGN:
        if target.startswith(prefixes):
            at_home = name.startswith(places) or (test and target.startswith("doctest/"))
            return None if at_home else f"<{target}> belongs in {' or '.join(places)} only."
    return None


# ---------------------------------------------------------------- Python


def python_problems(package: Path) -> Iterator[str]:
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        parts = name.split("/")
        folder = parts[0] if len(parts) > 1 else table.PYTHON_FILES.get(name, "")
        if folder not in table.PYTHON:
            yield f"leadline/{name}: {folder!r} is not in the import table; add it to tools/import_table.py."
            continue
        for line, target, lazy in imports(ast.parse(path.read_text(encoding="utf-8")), ["leadline", *parts]):
            problem = _python_problem(package, folder, target, lazy)
            if problem:
                yield f"leadline/{name}:{line}: {problem}"


def imports(tree: ast.Module, parts: list[str]) -> Iterator[tuple[int, str, bool]]:
    """(line, dotted name, whether inside a function) of each import; those for type checking are left out."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, lazy = pending.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            pending += [(child, lazy) for child in node.orelse]
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, lazy
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parts[: len(parts) - node.level]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}", lazy
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


_STANDARD = sys.stdlib_module_names | {"tomllib"}
"""Of every Python that is supported, also where an older one runs this."""


def _python_problem(package: Path, folder: str, target: str, lazy: bool) -> str | None:
    top, _, rest = target.partition(".")
    here = f"leadline.{folder}" if folder else "leadline"
    if top != "leadline":
        if top in _STANDARD or top in table.PYTHON_FOREIGN[folder]:
            return None
        if lazy and top in table.PYTHON_FOREIGN_LAZY.get(folder, set()):
            return None
        where = "inside a function" if lazy else "at the top of a file"
        return f"{here} may not import {top} {where}."
    if "leadline" in table.PYTHON_FOREIGN[folder] and not rest.partition(".")[2]:
        return None  # only the public names
    first = rest.partition(".")[0]
    other = first if (package / first).is_dir() or first in table.PYTHON_ALWAYS | table.PYTHON_NATIVE else ""
    allowed = table.PYTHON[folder] | table.PYTHON_ALWAYS | {folder}
    if lazy:
        allowed |= table.PYTHON_LAZY.get(folder, set())
    return None if other in allowed else f"{here} may not import {target}."


if __name__ == "__main__":
    sys.exit(main())
