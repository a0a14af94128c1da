"""Options that few need: `--help` leaves them out and `--help-all` lists them."""

from __future__ import annotations

import argparse
from typing import Any


class MoreOptions:
    """Adds options to `parser`; their help is shown where `main` has set `help_all`, a default of the parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._into: Any = parser
        self._shown = bool(parser.get_default("help_all"))
        self._parser = parser
        parser.add_argument("--help-all", action="help", help="list all options and exit")

    def add(self, *names: str, **settings: Any) -> None:
        """As `ArgumentParser.add_argument`."""
        if not self._shown:
            settings["help"] = argparse.SUPPRESS
        self._into.add_argument(*names, **settings)

    def old(self, name: str, **settings: Any) -> None:
        """What an earlier version called an option: read, and never listed."""
        self._into.add_argument(name, help=argparse.SUPPRESS, **settings)

    def group(self, title: str, about: str) -> None:
        """What is added from here on stands below a title of its own."""
        if self._shown:
            self._into = self._parser.add_argument_group(title, about)
