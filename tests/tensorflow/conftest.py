"""Running a program under `leadline run` and opening what was written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import leadline
from leadline.profiles import Profile
from leadline.profiles.tree import Node

PROGRAMS = Path(__file__).parent / "programs"


@dataclass
class Ran:
    """A program that has ended: its profile, and what it printed."""

    profile: Profile
    output: str

    def nodes(self, name: str) -> list[Node]:
        """Operators of that name."""
        return [node for node in self.profile.tree.find(kind="operator") if node.name == name]

    def calls(self, name: str) -> int:
        """How often something ran, over all places."""
        return sum(int(node.exclusive("call_time").count) for node in self.nodes(name))

    def inside(self) -> list[Node]:
        """Nodes of graphs."""
        return [node for node in self.profile.tree.find(kind="operator") if "node" in node.detail]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """Run a program of `programs/` under `leadline run`, with arguments and options."""

    def run(
        name: str, *arguments: str, options: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> Ran:
        output = tmp_path / f"{Path(name).name}.leadline"
        done = subprocess.run(
            [sys.executable, "-m", "leadline", "run", "-o", str(output), *options, str(PROGRAMS / name), *arguments],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})},
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return Ran(leadline.open(output), done.stdout)

    return run
