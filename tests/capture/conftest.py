"""Running programs plainly and under Leadline, side by side, in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import leadline
from leadline.profiles import Profile

LEADLINE = (sys.executable, "-m", "leadline.cli.main")

WORK = """
import leadline, os, sys
def work(name):
    with leadline.region(name):
        pass
"""
"""How the programs of `Workplace.measure` begin."""


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
        options.setdefault("timeout", 120)
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, check=False, **options)

    def python(self, *arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        """Run this Python plainly."""
        return self.run(sys.executable, *arguments, **options)

    def leadline(self, *arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        """Run the leadline command."""
        return self.run(*LEADLINE, *arguments, **options)

    def start(self, *command: str, **options) -> subprocess.Popen[bytes]:
        """Start a command here and do not wait for it; `env` adds to the environment."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
        environment.update(options.pop("env", {}))
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(command, cwd=self.folder, env=environment, **options)

    def write_work(self, name: str, text: str) -> Path:
        """Write a program that has `work(name)`, which opens and closes a region."""
        return self.write(name, WORK + textwrap.dedent(text))

    def measure(self, program: str, *options: str, returncode: int = 0) -> Profile:
        """The profile of a program that has `work`; it must end with `returncode` and say nothing on stderr."""
        self.write_work("script.py", program)
        result = self.leadline("run", "-q", *options, "script.py")
        assert (result.returncode, result.stderr.decode()) == (returncode, "")
        return self.open("script.leadline")

    def open(self, name: str) -> Profile:
        """A profile made here."""
        return leadline.open(str(self.folder / name))

    def meta(self, name: str = "script.leadline") -> dict[str, object]:
        """Its meta.json as it stands in the file."""
        with zipfile.ZipFile(self.folder / name) as package:
            return json.loads(package.read("meta.json"))

    def wait_for(self, name: str, *, gone: bool = False) -> None:
        """Until a file has appeared (or gone), for a minute."""
        deadline = time.monotonic() + 60
        while (self.folder / name).exists() == gone:
            assert time.monotonic() < deadline, f"waited for {name} in vain"
            time.sleep(0.01)

    @staticmethod
    def regions(profile: Profile) -> list[str]:
        """Names of the region frames, sorted."""
        return sorted(node.name for node in profile.tree.walk() if node.kind == "region")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)
