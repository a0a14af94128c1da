"""The options of `leadline run` that belong to event tools."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.capture.config import KERNEL_LEVELS
from leadline.capture.durations import is_duration
from leadline.cli.errors import CommandError

TOOL_OPTIONS_WITH_VALUES = (
    "--tool", "--tool-option", "--backend", "--launch-range", "--layer", "--phase", "--kernel-name", "--every", "--most"
)  # fmt: skip
_KNOBS = {"MAX_CALLED_KERNEL": "launches", "MAX_MEM_REFERENCED_KERNEL": "accesses"}
"""Environment variables of the PASTA paper, and what they ask for."""


def add_tool_arguments(parser: argparse.ArgumentParser) -> None:
    """`--tool` and what it looks at."""
    group = parser.add_argument_group("event tools", "your own analysis, or one of `leadline tool`")
    group.add_argument("--tool", action="append", default=[], metavar="NAME|FILE", help="run a tool; may be repeated")
    group.add_argument(
        "--tool-option", action="append", default=[], metavar="TOOL.NAME=VALUE", help="set an option of a tool"
    )
    group.add_argument("--backend", default="auto", metavar="NAME", help="where its events come from (default: auto)")
    group.add_argument("--launch-range", default="", metavar="A:B", help="look at launches A to B-1 only")
    group.add_argument("--layer", default="", metavar="REGEX", help="look at modules whose name matches only")
    group.add_argument("--phase", default="", metavar="NAME", help="look at forward, backward or optimizer only")
    group.add_argument(
        "--kernel-name",
        default="",
        metavar="REGEX",
        help="look at kernels whose name matches only; --kernel REGEX does so too, but for the levels of the system's "
        "kernel",
    )
    group.add_argument(
        "--most",
        default="",
        metavar="EXPR",
        help="show the kernel with the most launches, accesses, or arithmetic over them (bytes/launches), and its path",
    )
    group.add_argument(
        "--every",
        action="append",
        default=[],
        metavar="N|TIME",
        help="a number: look at one launch of N only; a time such as 10min: a new file so often (see --keep)",
    )


def tool_options(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, Any]:
    """As `Options.of` takes them, files by their full path; raises CommandError for what cannot work."""
    names, texts = list(arguments.tool), list(arguments.tool_option)
    knobs = [by for name, by in _KNOBS.items() if environment.get(name, "") not in ("", "0")]
    if by := ",".join([*([arguments.most] if arguments.most else []), *knobs]):
        names.append("most")
        texts.append(f"most.by={by}")
    pattern = _pattern_of_kernels(arguments)
    if not names:
        _refuse_ranges_without_tools(arguments, pattern)
        return {}
    from leadline.tools.backends import choose
    from leadline.tools.errors import ToolError
    from leadline.tools.loading import find_tools, parse_options
    from leadline.tools.ranges import Ranges, from_environment

    launches = arguments.launch_range
    try:
        if by:
            from leadline.tools.shipped import most

            most.check(by)
        launches = launches or from_environment(environment)
        tools = [tool for tool, _ in find_tools(names)]
        parse_options(texts, tools)
        one_of = launches_looked_at(arguments.every)
        Ranges.of(launches, arguments.layer, arguments.phase, pattern, one_of)
        tool_of = {event: tool.name() for tool in tools for event in tool.wanted()}
        choose(arguments.backend, tool_of, tool_of)
    except ToolError as error:
        raise CommandError(str(error)) from error
    return {
        "tools": [str(Path(one).resolve()) if Path(one).is_file() else one for one in names],
        "tool_options": texts,
        "backend": _whole_path(arguments.backend),
        "launch_range": launches,
        "layer": arguments.layer,
        "phase": arguments.phase,
        "kernel_name": pattern,
        "every": one_of,
    }


def system_kernel_level(words: Sequence[str]) -> str:
    """The level of the system's kernel among the values of `--kernel`, or empty."""
    return next((word for word in reversed(words) if word in KERNEL_LEVELS), "")


def _pattern_of_kernels(arguments: argparse.Namespace) -> str:
    """What names of the device's kernels have to match; raises CommandError for two patterns."""
    words = [word for word in arguments.kernel if word not in KERNEL_LEVELS]
    patterns = [*words, *([arguments.kernel_name] if arguments.kernel_name else [])]
    if len(patterns) > 1:
        raise CommandError(f"Kernels are chosen by one pattern; write {'|'.join(patterns)!r} as one.")
    return patterns[0] if patterns else ""


def _refuse_ranges_without_tools(arguments: argparse.Namespace, pattern: str) -> None:
    if arguments.kernel and pattern in arguments.kernel:
        raise CommandError(
            f"There is no level {pattern!r} of the kernel's events; the levels are {', '.join(KERNEL_LEVELS)}. As a "
            "pattern of kernels' names it needs a tool (--tool NAME)."
        )
    chosen = {
        "--launch-range": arguments.launch_range,
        "--layer": arguments.layer,
        "--phase": arguments.phase,
        "--kernel-name": arguments.kernel_name,
        "--tool-option": arguments.tool_option,
        "--backend": arguments.backend != "auto",
        "--every": launches_looked_at(arguments.every) != 1,
    }
    named = [option for option, given in chosen.items() if given]
    if named:
        raise CommandError(f"{named[0]} says what tools look at, and there is none; add --tool NAME.")


def _whole_path(backend: str) -> str:
    """`replay:FILE` with the file's full path: the program may change its folder."""
    name, colon, file = backend.partition(":")
    return f"{name}:{Path(file).resolve()}" if colon else backend


def launches_looked_at(every: Sequence[str]) -> int:
    """The number among the values of `--every`; raises CommandError for what is neither number nor time."""
    numbers = [one for one in every if not is_duration(one)]
    if any(not one.lstrip("-").isdecimal() for one in numbers):
        raise CommandError(f"Cannot read --every {numbers[-1]}; write a number of launches, or a time such as 10min.")
    return int(numbers[-1]) if numbers else 1
