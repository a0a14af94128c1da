"""`leadline export`: a profile in the format of another viewer."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError
from leadline.cli.files import add_newest, add_output
from leadline.convert import EXPORTERS, Exporter, exporter_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    readers = "; ".join(f"{one.name}: {one.reader}" for one in EXPORTERS)
    add_newest(parser)
    parser.add_argument("--format", choices=[one.name for one in EXPORTERS], help=f"output format ({readers})")
    add_output(parser, "the file to write, - for stdout", required=True)
    parser.add_argument("--metric", metavar="METRIC", help="export only METRIC, such as time or alloc_bytes")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="options", help="set an option of the format"
    )


def run(arguments: argparse.Namespace) -> int:
    from leadline.cli.files import open_profile, sink_for
    from leadline.convert import ExportError, Request, write

    exporter = _exporter(arguments.format, arguments.output)
    profile = open_profile(arguments.file)
    request = Request(exporter.holds, arguments.metric, _options(arguments.options))
    try:
        with sink_for(arguments.output, folder=exporter.folder, force=arguments.force) as sink:
            write(profile, exporter, request, sink)
    except ExportError as error:
        raise CommandError(str(error)) from error
    return 0


def _options(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"--set {pair} has no value; write it like --set NAME=VALUE.")
        found[name.strip()] = value.strip()
    return found


def _exporter(name: str | None, output: str) -> Exporter:
    found = exporter_for(output) if name is None else next(one for one in EXPORTERS if one.name == name)
    if found is None:
        known = ", ".join(one.name for one in EXPORTERS)
        raise CommandError(f"The name {output} does not say which format to write; add --format with one of {known}.")
    return found
