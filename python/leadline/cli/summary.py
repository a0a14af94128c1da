"""`leadline summary`: the page that a training run leaves, made again from its profile, or of a trace of others."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a .leadline file (its side file .json is read too), or a Kineto trace"
    )
    parser.add_argument("--json", action="store_true", help="as summary.json has it")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    """Print the page; of a trace one page per rank."""
    import json

    from leadline.cli.files import write_result
    from leadline.profiles import ProfileFileError
    from leadline.report.training import as_json, summarize
    from leadline.report.training.markdown import render
    from leadline.report.training.of_trace import summarize_trace
    from leadline.trace.tables import TraceError

    try:
        ours = arguments.file.endswith(".leadline")
        pages = [summarize(arguments.file)] if ours else summarize_trace(arguments.file)
    except (ProfileFileError, TraceError, ValueError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"Cannot read {arguments.file}: {error.strerror or error}.") from error
    if arguments.json:
        found = [as_json(page) for page in pages]
        text = json.dumps(found[0] if len(found) == 1 else found, indent=1) + "\n"
    else:
        text = "\n".join(render(page) for page in pages)
    write_result(text, arguments.output)
    return 0
