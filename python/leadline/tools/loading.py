"""Finding tools: by name (shipped, or of an entry point `leadline.tools`), or in a file of one's own."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline._installed import entry_points
from leadline.tools.errors import ToolError
from leadline.tools.tool import Tool, option

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SHIPPED: dict[str, str] = {
    "kernel_frequency": "leadline.tools.shipped.kernel_frequency",
    "working_set": "leadline.tools.shipped.working_set",
    "memory_timeline": "leadline.tools.shipped.memory_timeline",
    "hotness": "leadline.tools.shipped.hotness",
    "most": "leadline.tools.shipped.most",
    "roofline": "leadline.tools.shipped.roofline",
    "uvm_advisor": "leadline.tools.shipped.uvm_advisor",
    "value_check": "leadline.tools.shipped.value_check",
    "same_inputs": "leadline.tools.shipped.same_inputs",
    "redundant_load": "leadline.tools.shipped.redundant_load",
    "divergence": "leadline.tools.shipped.divergence",
    "bank_conflict": "leadline.tools.shipped.bank_conflict",
    "barrier_stall": "leadline.tools.shipped.barrier_stall",
    "record": "leadline.tools.shipped.record",
    "record_values": "leadline.tools.shipped.record",
}
"""Shipped tools and their modules, each with one Tool class."""
ENTRY_POINTS = "leadline.tools"


def find_tools(asked: Iterable[str]) -> list[tuple[type[Tool], str]]:
    """The classes of what `--tool` names, each with the file that it was read from (empty for installed ones); raises
    ToolError."""
    found: list[tuple[type[Tool], str]] = []
    for one in asked:
        if one.endswith(".so"):
            from leadline.tools.c_tool import load

            found.append((load(one), str(Path(one))))
        else:
            found += _from_file(one) if _is_file(one) else [(_by_name(one), "")]
    names = [tool.name() for tool, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise ToolError(f"Two tools are named {name!r}; leave one of them out.")
    return found


def parse_options(texts: Iterable[str], tools: Iterable[type[Tool]]) -> dict[str, dict[str, str]]:
    """`NAME.KEY=VALUE` by tool and key; raises ToolError."""
    known = {tool.name() for tool in tools}
    values: dict[str, dict[str, str]] = {name: {} for name in known}
    for text in texts:
        key, equals, value = text.partition("=")
        tool, dot, name = key.partition(".")
        if not dot and len(known) == 1:
            tool, name = next(iter(known)), key
        elif not dot:
            raise ToolError(f"It is not clear whose option {key!r} is; write TOOL.{key}=VALUE.")
        if not equals or not name:
            raise ToolError(f"Cannot read the tool option {text!r}; write TOOL.NAME=VALUE.")
        if tool not in known:
            raise ToolError(
                f"There is no tool {tool!r} in this run for the option {text!r}; there is {', '.join(sorted(known))}."
            )
        values[tool][name] = value
    return values


def known_tools() -> dict[str, type[Tool] | str]:
    """Every tool that can be named, or why it cannot be loaded."""
    found: dict[str, type[Tool] | str] = {}
    for name in [*SHIPPED, *(entry.name for entry in _entry_points())]:
        try:
            found[name] = _by_name(name)
        except ToolError as error:
            found[name] = str(error)
    return found


def _is_file(text: str) -> bool:
    return text.endswith((".py", ".so")) or "/" in text


def _entry_points() -> Iterable[EntryPoint]:
    return entry_points(ENTRY_POINTS)


def _by_name(name: str) -> type[Tool]:
    if name in SHIPPED:
        return _only(importlib.import_module(SHIPPED[name]), name)
    for entry in _entry_points():
        if entry.name == name:
            try:
                loaded = entry.load()
            except Exception as error:
                raise ToolError(
                    f"The tool {name} of {entry.value} cannot be loaded: {type(error).__name__}: {error}."
                ) from error
            if not (isinstance(loaded, type) and issubclass(loaded, Tool)):
                raise ToolError(f"The entry point {entry.value} is no leadline.tools.Tool class.")
            return loaded
    known = ", ".join([*SHIPPED, *(entry.name for entry in _entry_points())])
    raise ToolError(f"There is no tool {name!r}; there are {known}, or give a file: --tool ./mine.py.")


def _only(module: Any, name: str) -> type[Tool]:
    tools = _classes(vars(module), module.__name__)
    return next(tool for tool in tools if tool.name() == name)


def _classes(names: Mapping[str, Any], module: str) -> list[type[Tool]]:
    return [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, Tool) and value is not Tool and value.__module__ == module
    ]


def _from_file(text: str) -> list[tuple[type[Tool], str]]:
    """The Tool classes of a Python file; `Tool` and `option` are there without an import."""
    path = Path(text)
    if not path.is_file():
        raise ToolError(f"There is no file {text}; give a Python file with a Tool class, or a tool's name.")
    module = f"leadline_tool_{path.stem}"
    names: dict[str, Any] = {"__name__": module, "__file__": str(path), "Tool": Tool, "option": option}
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), names)
    except Exception as error:
        line = getattr(error, "lineno", None) or _line_in(error, str(path))
        where = f"{path.name}:{line}" if line else path.name
        raise ToolError(f"The tool {where} cannot be loaded: {type(error).__name__}: {error}.") from error
    tools = _classes(names, module)
    if not tools:
        raise ToolError(f"{text} has no class that is a Tool; write `class Mine(Tool):` with an `events` attribute.")
    return [(tool, str(path)) for tool in tools]


def _line_in(error: BaseException, file: str) -> int:
    step, line = error.__traceback__, 0
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    return line


__all__ = ["SHIPPED", "find_tools", "known_tools", "parse_options"]
