"""Part of `data_loading`: whether a method makes the same sample each time, by its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from leadline.analysis.calls_in_source import name_of
from leadline.analysis.findings import Line
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case

_OF_CHANCE = re.compile(
    r"rand|rng|choice|shuffle|augment|transform|jitter|flip|crop|noise|drop|mix|yield|perturb", re.IGNORECASE
)
"""Words of a method whose samples may differ from pass to pass."""


def same_each_time(case: Case, known: Mapping[str, Any]) -> Line | None:
    """The user's method that makes samples, where its source calls nothing that may differ from pass to pass."""
    place = known.get("items")
    if not isinstance(place, dict) or origin(str(place.get("file", ""))) != Origin.USER:
        return None
    line = case.line_at(str(place["file"]), int(place["line"]), str(place.get("name", "")))
    source = case.sources.of(line.file)
    function = source.function(line.line) if source is not None else None
    if source is None or source.tree is None or function is None:
        return None
    of_chance = any(_OF_CHANCE.search(ast.unparse(one)) for one in (function, *_methods(source.tree, function)))
    return None if of_chance else line


def _methods(tree: ast.Module, function: ast.AST) -> list[ast.AST]:
    """Functions of the file that a function calls by name or on itself, and what these call."""
    by_name = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    found: list[ast.AST] = []
    left = [function]
    while left:
        for node in ast.walk(left.pop()):
            called = node.func if isinstance(node, ast.Call) else None
            one = by_name.get(name_of(called))
            if one is not None and one is not function and one not in found:
                found.append(one)
                left.append(one)
    return found
