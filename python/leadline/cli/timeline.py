"""`leadline timeline`: what each thread did in each step of the trace window, and what it waited for."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output, add_source_root
from leadline.cli.formats import add_format, chosen_format

if TYPE_CHECKING:
    from leadline.profiles import Profile

_FORMATS = ("text", "csv", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_newest(parser)
    parser.add_argument("--thread", metavar="THREAD", help="show only threads with this name or number")
    parser.add_argument("--step", type=int, metavar="N", help="show only step N")
    add_format(parser, _FORMATS, old=("csv", "html"))
    parser.add_argument(
        "--whatif",
        nargs="?",
        const="",
        action="append",
        metavar="SCENARIO",
        help="with --format html: also draw the timeline predicted for SCENARIO, a title of `leadline whatif` "
        "(default: its best advice); may be repeated",
    )
    add_output(parser, "the file to write (default: stdout)")
    add_source_root(parser)


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, write_result
    from leadline.report.timeline import TimelineError, as_csv, as_text, chosen

    profile = open_profile(arguments.file)
    chosen_form = chosen_format(arguments, _FORMATS)
    if arguments.whatif is not None and chosen_form != "html":
        raise CommandError("A predicted timeline needs a page; add -o OUT.html.")
    if chosen_form == "html":
        return _page(profile, arguments)
    if not len(profile.events["start_ns"]) and len(profile.table("kernel_events")["time_ns"]):
        return _machine(profile, arguments)
    try:
        found = chosen(profile, arguments.file, arguments.thread, arguments.step)
    except TimelineError as error:
        raise CommandError(str(error)) from error
    write_result(
        as_csv(found) if chosen_form == "csv" else as_text(profile, found), arguments.output, force=arguments.force
    )
    return 0


def _machine(profile: Profile, arguments: argparse.Namespace) -> int:
    """A recording of the kernel alone has threads, and no steps."""
    from leadline.cli.files import write_result
    from leadline.report.machine_timeline import machine_as_csv, machine_as_text, machine_rows
    from leadline.report.timeline import TimelineError

    if arguments.step is not None:
        raise CommandError(
            f"{arguments.file} has events of the Linux kernel and no trace window of a program, so it has no steps."
        )
    try:
        rows = machine_rows(profile, arguments.thread)
    except TimelineError as error:
        raise CommandError(str(error)) from error
    write_result(
        machine_as_csv(rows) if chosen_format(arguments, _FORMATS) == "csv" else machine_as_text(profile, rows),
        arguments.output,
        force=arguments.force,
    )
    return 0


def _page(profile: Profile, arguments: argparse.Namespace) -> int:
    from leadline.cli.files import write_result
    from leadline.report import ReportOptions, build_report
    from leadline.report.html import findings_of, render_html, sources_of

    if arguments.output is None:
        raise CommandError("A page is written to a file; name it with -o OUT.html.")
    predicted = _predicted(profile, arguments.whatif) if arguments.whatif is not None else []
    report = build_report(profile, ReportOptions(frames=False, whole_tables=True), arguments.file)
    page = render_html(profile, report, findings_of(profile), sources_of(profile), predicted)
    write_result(page.encode(), arguments.output, force=arguments.force)
    print(f"open {arguments.output}#timeline in a browser", file=sys.stderr)
    return 0


def _predicted(profile: Profile, names: list[str]) -> list[dict[str, Any]]:
    from leadline.report.predicted import Predictor

    predictor = Predictor(profile)
    found = {}
    for name in names:
        one = predictor.answer(name)
        if one["trouble"]:
            known = "; ".join(each["title"] for each in one["scenarios"])
            raise CommandError(one["trouble"] + (f" There are: {known}." if known else ""))
        found[one["chosen"]["title"]] = one
    return list(found.values())
