"""`leadline report`: a profile as text, markdown, JSON or one self-contained HTML page."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from leadline._dataclass import replace
from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output, add_source_root
from leadline.cli.formats import add_format, chosen_format

if TYPE_CHECKING:
    from leadline.profiles import Profile

_DEFAULT_ROWS = {"text": 10, "markdown": 10, "json": 1000, "html": 200}  # a page scrolls, a program filters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_newest(parser)
    add_format(parser, list(_DEFAULT_ROWS))
    add_output(parser, "write to OUT instead of the terminal")
    add_source_root(parser)
    parser.add_argument(
        "--sort", metavar="METRIC", help="order paths and operators by METRIC, such as time, alloc_bytes, count"
    )
    parser.add_argument(
        "--top", metavar="N", type=_rows, help="rows per table (default: 10; 200 in HTML, 1000 in JSON)"
    )
    parser.add_argument(
        "--focus", metavar="REGEX", help="count only paths with a frame whose name or file:line matches REGEX"
    )
    parser.add_argument(
        "--source",
        action="store_true",
        help="show the source of GPU kernels with the stalls of their instructions; --focus selects kernels by name",
    )
    parser.add_argument("--tool", metavar="NAME", help="show the full result of an event tool; `all`: of every tool")
    parser.add_argument(
        "--rank", metavar="N", type=int, help="of a merged file: show only rank N (late ranks have their own tree)"
    )
    parser.add_argument("--no-source", action="store_true", help="do not embed source files in the HTML page")
    parser.add_argument("--hide-library-frames", action="store_true", help="leave library frames out of the paths")


def _rows(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows; give 1 or more")
    return value


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import load_numpy, open_profile, write_result

    load_numpy()
    from leadline.report import BadPatternError, ReportOptions, TooLargeError, UnknownMetricError, build_report

    if arguments.tool:
        return _report_tool(arguments)
    if arguments.source:
        return _report_source(arguments)
    chosen = chosen_format(arguments, list(_DEFAULT_ROWS))
    top = arguments.top or _DEFAULT_ROWS[chosen]
    options = ReportOptions(
        sort=arguments.sort,
        top=top,
        focus=arguments.focus,
        hide_library_frames=arguments.hide_library_frames,
        frames=chosen != "html",
        verdict=True,
        merge_layers=chosen in ("text", "markdown"),
        whole_tables=chosen == "html",
    )
    if chosen == "html" and arguments.output is None and sys.stdout.isatty():
        raise CommandError("An HTML page cannot be shown in a terminal; write it to a file with -o NAME.html.")
    profile = open_profile(arguments.file)
    if arguments.rank is not None:
        profile = _of_rank(profile, arguments)
    try:
        report = build_report(profile, options, arguments.file)
        if arguments.rank is not None:
            report = replace(report, next_commands=())  # which would be about all ranks
    except (UnknownMetricError, BadPatternError, TooLargeError) as error:
        raise CommandError(str(error)) from error
    if chosen == "json":
        from leadline.report.json_report import render_json

        write_result(render_json(report), arguments.output, force=arguments.force)
    elif chosen == "markdown":
        from leadline.report.markdown import render_markdown

        write_result(render_markdown(report), arguments.output, force=arguments.force)
    elif chosen == "html":
        from leadline.profiles.code import disassembled
        from leadline.report.html import findings_of, render_html, sources_of

        sources = {} if arguments.no_source else sources_of(profile)
        profile = disassembled(profile)
        page = render_html(profile, report, findings_of(profile), sources)
        write_result(page.encode(), arguments.output, force=arguments.force)  # the page says that it is UTF-8
        if sources:
            files = "1 source file is" if len(sources) == 1 else f"{len(sources)} source files are"
            print(f"leadline: {files} in the page (listed at its end); --no-source leaves them out.", file=sys.stderr)
    else:
        from leadline.report.encoding import for_stream
        from leadline.report.text import render_text

        if arguments.output in (None, "-"):
            width, colour = for_stream(sys.stdout)
            write_result(render_text(report, width, colour), None)
        else:
            write_result(render_text(report), arguments.output, force=arguments.force)
    return 0


def _of_rank(profile: Profile, arguments: argparse.Namespace) -> Profile:
    from leadline.analysis.ranks import is_folded_profile, ranges
    from leadline.profiles.fold.alone import rank_profile, ranks_alone

    found = rank_profile(profile, arguments.rank)
    if found is not None:
        return found
    if not is_folded_profile(profile):
        raise CommandError(f"{arguments.file} has one rank; --rank is for files that `leadline merge` wrote.")
    held = ranges([one.rank for one in ranks_alone(profile)])
    has = f"keeps its own tree for ranks {held}" if held else "keeps no rank with its own tree, since none was late"
    raise CommandError(
        f"{arguments.file} {has}; open the file of rank {arguments.rank}, or keep all ranks with `merge --by rank`."
    )


def _report_tool(arguments: argparse.Namespace) -> int:
    """What tools have found: text, or JSON with `--format json`."""
    import json

    from leadline.cli.files import open_profile, write_result
    from leadline.report.encoding import for_stream
    from leadline.report.tools import tool_results, tools_text

    profile = open_profile(arguments.file)
    everything = tool_results(profile)
    chosen = [one for one in everything if arguments.tool in ("all", one.name)]
    if not chosen:
        have = ", ".join(dict.fromkeys(one.name for one in everything)) or "none (run with `leadline run --tool NAME`)"
        raise CommandError(f"{arguments.file} has no result of a tool {arguments.tool!r}; it has {have}.")
    if chosen_format(arguments, list(_DEFAULT_ROWS)) == "json":
        found = [{"process": one.process, **one.found} for one in chosen]
        write_result(json.dumps(found, indent=1) + "\n", arguments.output, force=arguments.force)
        return 0
    width, colour = for_stream(sys.stdout) if arguments.output in (None, "-") else (120, False)
    text = tools_text(chosen, width, arguments.top or 20, colour=colour)
    write_result(text.lstrip("\n"), arguments.output, force=arguments.force)
    return 0


def _report_source(arguments: argparse.Namespace) -> int:
    """Heat on the source of kernels: text, or JSON with `--format json`."""
    from leadline.cli.files import open_profile, write_result
    from leadline.profiles.code import disassembled
    from leadline.report.build import BadPatternError
    from leadline.report.encoding import for_stream
    from leadline.report.kernel_source import kernel_heat
    from leadline.report.kernel_source_text import render_json, render_text

    profile = disassembled(open_profile(arguments.file))
    try:
        kernels = kernel_heat(profile, arguments.focus)
    except BadPatternError as error:
        raise CommandError(str(error)) from error
    if not kernels:
        sampled = bool(profile.tree.exclusive("instruction_samples").count.any())
        why = (
            f"no sampled kernel matches {arguments.focus!r}"
            if sampled and arguments.focus
            else "no instructions of kernels were sampled; run with `leadline run --instructions`"
        )
        raise CommandError(f"{arguments.file} has no source of kernels to show: {why}.")
    if chosen_format(arguments, list(_DEFAULT_ROWS)) == "json":
        write_result(render_json(kernels), arguments.output, force=arguments.force)
        return 0
    width, colour = for_stream(sys.stdout) if arguments.output in (None, "-") else (120, False)
    text = render_text(kernels, width, arguments.top or 10, colour=colour, devices=profile.devices)
    write_result(text, arguments.output, force=arguments.force)
    return 0
