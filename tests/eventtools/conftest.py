"""Running a program under tools, as a person would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.report.tools import tool_results


def rows_of(found: Mapping[str, Any], name: str = "") -> list[dict[str, Any]]:
    """The rows of the first table among what a tool has found, or of that name, each by column."""
    output = next(o for o in found["outputs"] if o["kind"] == "table" and name in ("", o["name"]))
    columns = [column["name"] for column in output["columns"]]
    return [dict(zip(columns, row, strict=True)) for row in output["rows"]]


@dataclass
class Ran:
    """What a run left."""

    code: int
    out: str
    err: str
    profile: Any
    folder: Path

    def found(self, tool: str) -> dict[str, Any]:
        """What one tool has found."""
        (result,) = tool_results(self.profile, tool)
        return dict(result.found)

    def table(self, tool: str, name: str = "") -> list[dict[str, Any]]:
        """The rows of a tool's table, each by column."""
        return rows_of(self.found(tool), name)


class Runner:
    """Writes program and tools to files and runs `leadline run`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, program: str, *arguments: str, tools: str = "", env: dict[str, str] | None = None) -> Ran:
        (self.folder / "program.py").write_text(textwrap.dedent(program))
        words = [sys.executable, "-m", "leadline", "run", "-o", "out.leadline"]
        if tools:
            (self.folder / "mine.py").write_text(textwrap.dedent(tools))
            words += ["--tool", "mine.py"]
        done = subprocess.run(
            [*words, *arguments, "program.py"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **(env or {})},
        )
        file = self.folder / "out.leadline"
        return Ran(
            done.returncode, done.stdout, done.stderr, leadline.open(file) if file.is_file() else None, self.folder
        )


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)
