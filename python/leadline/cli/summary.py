"""`leadline report --training`: the page that a training run leaves, made again from its profile, or of a trace."""

from __future__ import annotations

import argparse

from leadline.cli.errors import CommandError
from leadline.cli.files import add_output
from leadline.cli.formats import add_format, chosen_format
from leadline.profiles.meta import is_imported

_FORMATS = ("markdown", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a .leadline file (its side file .json is read too), a trace, or a folder of a run's files",
    )
    add_format(parser, _FORMATS, old=("json",))
    add_output(parser, "write to OUT instead of the terminal")


def run(arguments: argparse.Namespace) -> int:
    """Print the page; of a trace one page per rank, of a folder what its files say of the run over time."""
    import dataclasses
    import json
    from pathlib import Path

    from leadline.cli.files import open_profile, write_result
    from leadline.profiles import ProfileFileError
    from leadline.report.training import as_json, summarize
    from leadline.report.training.history import render_history, run_history
    from leadline.report.training.markdown import render
    from leadline.report.training.of_trace import summarize_profile
    from leadline.trace.tables import TraceError

    as_json_text = chosen_format(arguments, _FORMATS) == "json"
    try:
        if (folder := Path(arguments.file)).is_dir() and any(folder.glob("*_rank*.json")):
            history = run_history(folder)
            as_data = json.dumps(dataclasses.asdict(history), indent=1) + "\n"
            write_result(
                as_data if chosen_format(arguments, _FORMATS) == "json" else render_history(history),
                arguments.output,
                force=arguments.force,
            )
            return 0
        profile = open_profile(arguments.file)
        if is_imported(profile.meta):
            pages = summarize_profile(profile, Path(arguments.file).name)
        else:
            pages = [summarize(arguments.file, profile)]
    except (ProfileFileError, TraceError, ValueError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"Cannot read {arguments.file}: {error.strerror or error}.") from error
    if as_json_text:
        found = [as_json(page) for page in pages]
        text = json.dumps(found[0] if len(found) == 1 else found, indent=1) + "\n"
    else:
        text = "\n".join(render(page) for page in pages)
    write_result(text, arguments.output, force=arguments.force)
    return 0
