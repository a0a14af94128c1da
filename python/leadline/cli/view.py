"""`leadline view`: a profile to look at. `--tui`: in the terminal."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .leadline file")
    parser.add_argument("--tui", action="store_true", help="show it in this terminal (needs leadline[tui])")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.tui:
        raise CommandError(
            "leadline view shows profiles in the terminal only as yet: add --tui, or make a page with "
            "`leadline report FILE --format html -o FILE.html`."
        )
    return _in_terminal(arguments.file)


def _in_terminal(file: str) -> int:
    """Raises CommandError where the file, the terminal or Textual is missing."""
    from leadline.cli.files import open_profile

    if importlib.util.find_spec("textual") is None:
        raise CommandError("leadline view --tui needs Textual; install it with `pip install 'leadline[tui]'`.")
    profile = open_profile(file)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("leadline view --tui needs a terminal; `leadline report` writes to files and pipes.")
    from leadline.terminal.app import ViewApp

    ViewApp(profile, file).run()
    return 0
