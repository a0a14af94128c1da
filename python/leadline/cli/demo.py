"""`leadline demo`: profile the bundled training program and leave its profile and an HTML report.

It types what a user would type: `leadline run` and `leadline report`, and shows both commands.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from leadline.cli.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="demo.leadline", help="profile to write (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=150, help="training steps (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0, or that of the step that failed; CommandError where PyTorch is missing."""
    from leadline.cli.main import main

    if importlib.util.find_spec("torch") is None:
        raise CommandError("The demo needs PyTorch, which is not installed here; run `pip install torch`.")
    profile = Path(arguments.output)
    page = profile.with_suffix(".html")
    program = ["-m", "leadline.demo.train", "--steps", str(arguments.steps)]
    for command in (
        ["run", "-o", str(profile), *program],
        ["report", str(profile), "--format", "html", "-o", str(page)],
    ):
        print("$ leadline " + " ".join(command), flush=True)
        code = main(command)
        if code != 0:
            return code
    print(f"Open {page} in a browser.")
    return 0
