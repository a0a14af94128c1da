"""`%%leadline [NAME] [-o FILE]`: runs a cell under the profiler and shows what it cost.

The profile is left in the notebook's variable NAME (`leadline_profile` by default), and in FILE where one is given.
"""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
from typing import Any

from leadline.capture import api
from leadline.profiles import open_profile

_VARIABLE = "leadline_profile"


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext leadline`."""

    def leadline(line: str, cell: str) -> Any:
        return run_cell(shell, line, cell)

    shell.register_magic_function(leadline, magic_kind="cell", magic_name="leadline")


def run_cell(shell: Any, line: str, cell: str) -> Any:
    """The cell's profile; the cell's own error where it fails, after which the profile is there all the same."""
    name, output = _arguments(line)
    with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
        path = output or os.path.join(folder, "cell.leadline")  # noqa: PTH118
        api.start(path)
        try:
            result = shell.run_cell(cell)
        finally:
            made = api.stop()
        if made is None:
            raise ValueError("%%leadline made no profile: it could not be written, or another session is running.")
        profile = open_profile(made)
    shell.user_ns[name] = profile
    return profile if result.success else None


def _arguments(line: str) -> tuple[str, str | None]:
    parser = argparse.ArgumentParser(prog="%%leadline", exit_on_error=False, add_help=False)
    parser.add_argument("name", nargs="?", default=_VARIABLE)
    parser.add_argument("-o", "--output")
    try:
        found, rest = parser.parse_known_args(shlex.split(line))
    except (argparse.ArgumentError, ValueError) as error:
        raise ValueError(f"%%leadline [NAME] [-o FILE]: {error}") from None
    if rest or not found.name.isidentifier():
        raise ValueError(f"%%leadline [NAME] [-o FILE] does not know {' '.join(rest) or found.name}.")
    return found.name, found.output
