"""`leadline whatif`: what a change would do to the step time, predicted from one trace window."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline._dataclass import replace
from leadline._output import harmless
from leadline.cli.errors import CommandError
from leadline.cli.files import add_output
from leadline.cli.formats import add_format, chosen_format

if TYPE_CHECKING:
    from leadline.whatif.graph import Graph
    from leadline.whatif.predict import Report

_FORMATS = ("text", "json", "markdown", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="*",
        help="a .leadline file with a trace window, Kineto JSON (.json, .json.gz), a folder or .tar.gz with the traces "
        "of all ranks, whatever else `leadline import` reads, or a .parquet file of operations",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="predict NAME only; given more than once, the scenarios are combined in that order",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a scenario's parameter, with its unit: bandwidth=25GB/s, latency=5us, world_size=16",
    )
    parser.add_argument(
        "--with",
        dest="second",
        metavar="FILE2",
        help="a second profile of the program, with another batch size or number of loader workers, as evidence",
    )
    parser.add_argument("--steps", metavar="A-B", help="use only these steps of the trace, such as 3-5")
    parser.add_argument("--replay", action="store_true", help="only replay the measured steps")
    parser.add_argument("--critical-path", action="store_true", help="show the tasks that make up the step time")
    parser.add_argument("--list", action="store_true", help="list the scenarios and their parameters")
    add_format(parser, _FORMATS)
    parser.add_argument("--export", choices=("perfetto",), help="write the timelines for a viewer to OUT")
    add_output(parser, "write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import newest_profile, write_result

    chosen = chosen_format(arguments, _FORMATS)
    settings = _settings(arguments.settings)
    if arguments.list:
        if chosen == "html":
            raise CommandError("--list has no page; use --format text, markdown or json.")
        from leadline.whatif.listing import list_scenarios

        write_result(list_scenarios(chosen), arguments.output, force=arguments.force)
        return 0
    if not arguments.file:
        arguments.file = [newest_profile()]
    if arguments.export and not arguments.output:
        raise CommandError("--export writes a binary file; name it with -o OUT.")
    if _asks_for_stragglers(arguments, chosen):
        return _stragglers(arguments, chosen)
    graph = _load(arguments.file, arguments.steps)
    if arguments.second:
        graph = _with(graph, _load([arguments.second], None))
    report = _report(graph, arguments, settings)
    if arguments.export:
        write_result(_timeline(graph, report), arguments.output, force=arguments.force)
        return 0
    text = _render(graph, report, chosen, arguments)
    write_result(text if chosen == "html" else harmless(text), arguments.output, force=arguments.force)
    return 0


def _report(graph: Graph, arguments: argparse.Namespace, settings: dict[str, str]) -> Report:
    from leadline.whatif.advice import useful
    from leadline.whatif.kinds import GraphError
    from leadline.whatif.predict import predict, rank, replay
    from leadline.whatif.scenarios import ScenarioError

    only_replay = arguments.replay or (arguments.critical_path and not arguments.scenario)
    try:
        if arguments.scenario:
            return predict(graph, arguments.scenario, settings)
        if only_replay:
            return replay(graph)
        ranked = rank(graph, settings)
        # one predicted timeline beside the measured one: that of the best advice
        return replace(ranked, scenarios=useful(ranked)[:1]) if arguments.export else ranked
    except (ScenarioError, GraphError) as error:
        raise CommandError(str(error)) from error


def _load(files: Sequence[str], steps: str | None) -> Graph:
    from leadline.profiles import ProfileFileError
    from leadline.trace.tables import TraceError
    from leadline.whatif.kinds import GraphError
    from leadline.whatif.load import load

    try:
        return load(files[0] if len(files) == 1 else list(files), window=_window(steps))
    except (ProfileFileError, TraceError, GraphError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"Cannot read {files[0]}: {error.strerror or error}; check the path.") from error


def _with(graph: Graph, second: Graph) -> Graph:
    from leadline.whatif.kinds import GraphError
    from leadline.whatif.second_profile import with_evidence

    try:
        return with_evidence(graph, second)
    except GraphError as error:
        raise CommandError(f"--with: {error}.") from error


def _window(steps: str | None) -> tuple[int, int] | None:
    if steps is None:
        return None
    first, dash, last = steps.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise CommandError(f"--steps {steps} is not a range of steps; write it like --steps 3-5.")
    return int(first), int(last or first)


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"--set {pair} has no value; write it like --set bandwidth=25GB/s.")
        found[name.strip()] = value.strip()
    return found


def _render(graph: Graph, report: Report, chosen: str, arguments: argparse.Namespace) -> str:
    from leadline.whatif.render import as_json, as_markdown, as_text

    if chosen == "json":
        return as_json(report)
    if chosen == "html":
        from leadline.report.changes_predicted import predicted_changes
        from leadline.report.html import render_changes

        program = " ".join(Path(file).name for file in arguments.file)
        asked = bool(arguments.scenario)
        return render_changes(predicted_changes(graph, report, program, shlex.join(arguments.file), asked=asked))
    ranked = not arguments.scenario and not arguments.replay and not arguments.critical_path
    text = as_text(report, ranked=ranked) if chosen == "text" else as_markdown(report, ranked=ranked)
    if arguments.critical_path:
        from leadline.whatif.critical import describe_critical_path

        text += "\n" + describe_critical_path(graph, report, markdown=chosen == "markdown")
    return text


def _timeline(graph: Graph, report: Report) -> bytes:
    from leadline.whatif.export import perfetto_trace

    predictions = {
        p.title: (p.graph, p.result) for p in report.scenarios if p.graph is not None and p.result is not None
    }
    return perfetto_trace(graph, report.replay, predictions)


def _asks_for_stragglers(arguments: argparse.Namespace, chosen: str) -> bool:
    """A file of a job's operations says who is slow, unless another question is asked of it."""
    of_job = len(arguments.file) == 1 and arguments.file[0].endswith(".parquet")
    other = arguments.replay or arguments.critical_path or arguments.export or arguments.second or chosen == "html"
    return of_job and not other and arguments.scenario in (None, [], ["no_straggler"]) and not arguments.steps


def _stragglers(arguments: argparse.Namespace, chosen: str) -> int:
    from leadline.cli.files import write_result
    from leadline.whatif import straggler
    from leadline.whatif.straggler.render import as_json, as_text

    try:
        report = straggler.analyse(straggler.read(arguments.file[0]))
    except straggler.StragglerInputError as error:
        raise CommandError(str(error)) from error
    write_result(
        as_json(report) if chosen == "json" else as_text(report, markdown=chosen == "markdown"),
        arguments.output,
        force=arguments.force,
    )
    return 0
