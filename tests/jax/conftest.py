"""Running a program under `leadline run` and opening what was written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import leadline
from leadline.profiles import Profile

pytest.importorskip("jax", reason="these tests measure real JAX; install jax==0.10.2 to run them")

PROGRAMS = Path(__file__).parent / "programs"


class Ran:
    """A program that has ended: its profile, and what it and Leadline printed."""

    def __init__(self, folder: Path, profile: Profile, output: str, errors: str) -> None:
        self.folder = folder
        self.profile = profile
        self.output = output
        self.errors = errors
        tree = profile.tree
        self.paths = [tree.text("name", frame) for frame in tree.frame_of.tolist()]
        self.parents = tree.parent.tolist()
        self.calls = tree.exclusive("call_time").count.tolist()
        self.time_ns = tree.exclusive("time").sum.tolist()

    def path(self, row: int) -> list[str]:
        """Names from the root to a node."""
        names = []
        while row >= 0:
            names.append(self.paths[row])
            row = self.parents[row]
        return names[::-1]

    def line(self, row: int) -> int:
        """The line that a node stands on."""
        tree = self.profile.tree
        return int(tree.frames["line"][tree.frame_of[row]])

    def rows(self, name: str) -> list[int]:
        """Nodes of that name."""
        return [row for row, found in enumerate(self.paths) if found == name]

    def runs(self, name: str) -> int:
        """How often a program ran, over all places."""
        return sum(self.calls[row] for row in self.rows(name))


def measured(
    folder: Path,
    name: str,
    *arguments: str,
    environment: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    status: int = 0,
) -> Ran:
    """Run a program of `programs/` under `leadline run` with options in a folder, with arguments of its own."""
    output = folder / f"{name}.leadline"
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "run", "-o", str(output), *options, str(PROGRAMS / name), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **(environment or {})},
        cwd=folder,
    )
    assert done.returncode == status, done.stderr
    return Ran(folder, leadline.open(output), done.stdout, done.stderr)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """Run a program of `programs/` under `leadline run`, with arguments."""
    return partial(measured, tmp_path)
