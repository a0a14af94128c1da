"""Programs under `leadline run --cpu-sample`, and what their samples add up to."""

from __future__ import annotations

import ctypes
import json
import math
import os
import struct
import subprocess
import textwrap
from pathlib import Path

import pytest
from tests.capture.conftest import Workplace
from tests.losses import counts_by_kind

from leadline.profiles import Profile

SPIN = """
import json, threading, time

def spin(seconds):
    begin = time.thread_time()
    total = 0
    while time.thread_time() - begin < seconds:
        for number in range(2000):
            total += number * number
    return time.thread_time() - begin
"""
"""How programs begin that run for a time by the clock of their thread."""


class Sampled:
    """A program that was sampled: its profile, and what it printed as JSON on its last line."""

    def __init__(self, profile: Profile, printed: str) -> None:
        self.profile = profile
        self.said = json.loads(printed.splitlines()[-1]) if printed.strip() else None

    def by_function(self) -> dict[str, int]:
        """CPU nanoseconds by the innermost Python function, all lines and threads together."""
        found: dict[str, int] = {}
        for node in self.profile.tree.walk():
            ns = self.profile.tree.exclusive("cpu_sample").sum[node.row]
            if ns and node.kind == "python":
                found[node.name] = found.get(node.name, 0) + int(ns)
        return found

    def below(self, name: str) -> int:
        """CPU nanoseconds at and below frames of this name."""
        tree = self.profile.tree
        whole = tree.inclusive("cpu_sample").sum
        return sum(
            int(whole[node.row])
            for node in tree.walk()
            if node.name == name and name not in {above.name for above in node.path()[:-1]}
        )

    @property
    def total_ns(self) -> int:
        return int(self.profile.tree.exclusive("cpu_sample").sum.sum())

    @property
    def samples(self) -> int:
        return int(self.profile.tree.exclusive("cpu_sample").count.sum())

    def losses(self) -> dict[str, int]:
        """By kind, without what is said where torch is built for CUDA and the machine has no GPU."""
        told = counts_by_kind(self.profile)
        without = sum("has no visible NVIDIA GPU" in loss.detail for loss in self.profile.losses)
        if without and told["provider_unavailable"] == without:
            del told["provider_unavailable"]
        return told


def may_count_tasks() -> bool:
    """Whether the kernel lets this user count what its threads run, which interrupts them on time."""
    software, task_clock, exclude_kernel = 1, 1, 1 << 5
    wanted = struct.pack("<IIQQQQQ", software, 64, task_clock, 0, 0, 0, exclude_kernel).ljust(64, b"\0")
    file = ctypes.CDLL(None, use_errno=True).syscall(298, wanted, 0, -1, -1, 0)
    if file >= 0:
        os.close(file)
    return bool(file >= 0)


def within_chance(share: float, expected: float, samples: int, sigmas: float = 4.5) -> bool:
    """Whether a share of so many samples may come of what happened with probability `expected`."""
    return abs(share - expected) <= sigmas * math.sqrt(max(expected * (1 - expected), 0.01) / samples) + 1 / samples


def build(place: Workplace, name: str, source: str, *options: str) -> None:
    (place.folder / f"{name}.c").write_text(source)
    command = ["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", *options, f"{name}.c", "-o", f"{name}.so"]
    subprocess.run(command, cwd=place.folder, check=True)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def sample(place: Workplace):
    """Runs a program that begins with SPIN; it must succeed and say nothing on stderr."""

    def run(program: str, *options: str, hz: int = 250, returncode: int = 0, timeout: float = 120) -> Sampled:
        (place.folder / "script.py").write_text(SPIN + textwrap.dedent(program))
        result = place.leadline("run", "-q", "--cpu-sample", str(hz), *options, "script.py", timeout=timeout)
        assert (result.returncode, result.stderr.decode()) == (returncode, "")
        return Sampled(place.open("script.leadline"), result.stdout.decode())

    return run
