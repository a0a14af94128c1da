"""The options of `leadline run` that belong to event tools."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.capture.config import KERNEL_LEVELS
from leadline.capture.durations import is_duration
from leadline.cli.errors import CommandError
from leadline.cli.more_options import MoreOptions

TOOL_OPTIONS_WITH_VALUES = (
    "--tool", "--tool-option", "--backend", "--launch-range", "--layer", "--phase", "--kernel-name", "--every",
    "--roll", "--launch-every", "--most",
)  # fmt: skip
_KNOBS = {"MAX_CALLED_KERNEL": "launches", "MAX_MEM_REFERENCED_KERNEL": "accesses"}
"""Environment variables of the PASTA paper, and what they ask for."""


def add_tool_arguments(more: MoreOptions) -> None:
    """`--tool` and what it looks at."""
    more.group("event tools", "your own analysis of events, or one that `leadline tool` lists")
    more.add("--tool", action="append", default=[], metavar="NAME|FILE", help="run a tool; may be repeated")
    more.add("--tool-option", action="append", default=[], metavar="TOOL.NAME=VALUE", help="set an option of a tool")
    more.add("--backend", default="auto", metavar="NAME", help="source of the events (default: auto)")
    more.add("--launch-range", default="", metavar="A:B", help="examine launches A to B-1 only")
    more.add("--layer", default="", metavar="REGEX", help="examine only modules whose name matches")
    more.add("--phase", default="", metavar="NAME", help="examine only forward, backward or optimizer")
    more.add(
        "--kernel-name",
        default="",
        metavar="REGEX",
        help="examine only kernels whose name matches",
    )
    more.add(
        "--most",
        default="",
        metavar="EXPR",
        help="show the kernel with the most launches, accesses, or arithmetic over them (bytes/launches), and its path",
    )
    more.add(
        "--launch-every",
        dest="every",
        action="append",
        metavar="N",
        help="examine one launch in N",
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
    """The level of the system's kernel among the values of `--os-trace`, or empty."""
    return next((word for word in reversed(words) if word in KERNEL_LEVELS), "")


def _pattern_of_kernels(arguments: argparse.Namespace) -> str:
    """What names of the device's kernels have to match; raises CommandError for two patterns."""
    words = [word for word in arguments.kernel if word not in KERNEL_LEVELS]
    patterns = [*words, *([arguments.kernel_name] if arguments.kernel_name else [])]
    if len(patterns) > 1:
        raise CommandError(f"Only one pattern can select kernels; write {'|'.join(patterns)!r}.")
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
        "--launch-every": launches_looked_at(arguments.every) != 1,
    }
    named = [option for option, given in chosen.items() if given]
    if named:
        raise CommandError(f"{named[0]} is an option of event tools; add --tool NAME.")


def _whole_path(backend: str) -> str:
    """`replay:FILE` with the file's full path: the program may change its folder."""
    name, colon, file = backend.partition(":")
    return f"{name}:{Path(file).resolve()}" if colon else backend


def launches_looked_at(every: Sequence[str]) -> int:
    """The number among the values of `--launch-every` and `--roll`; raises CommandError for what is neither."""
    numbers = [one for one in every if not is_duration(one)]
    if any(not one.lstrip("-").isdecimal() for one in numbers):
        raise CommandError(f"Cannot read {numbers[-1]!r}; write --launch-every N, or --roll TIME such as 10min.")
    return int(numbers[-1]) if numbers else 1
