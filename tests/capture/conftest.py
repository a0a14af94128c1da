"""Running programs plainly and under Leadline, side by side, in a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

LEADLINE = (sys.executable, "-m", "leadline.cli.main")


@dataclass(frozen=True)
class Workplace:
    """A folder with the programs of one test."""

    folder: Path

    def write(self, name: str, text: str) -> Path:
        """Write a program, indented as it stands in the test."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *command: str, **options) -> subprocess.CompletedProcess[bytes]:
        """Run a command here; `env` adds to the environment."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
        environment.update(options.pop("env", {}))
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        if options["stdin"] is None:
            del options["stdin"]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, timeout=120, check=False, **options
        )

    def python(self, *arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        """Run this Python plainly."""
        return self.run(sys.executable, *arguments, **options)

    def leadline(self, *arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        """Run the leadline command."""
        return self.run(*LEADLINE, *arguments, **options)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)
