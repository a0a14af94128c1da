"""Loops to be profiled, and what torch's own schedule says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.profiles import Profile
from leadline.training import TrainingProfiler, build_profiler


def transformers(reason: str) -> Any:
    """The package, where it can use the torch that is here."""
    found = pytest.importorskip("transformers", reason=reason)
    if not found.is_torch_available():
        pytest.skip("This transformers wants a newer PyTorch.")
    return found


def run(folder: Path, steps: range, *, next_step: int | None = None, tell: bool = True, **config) -> Profile:
    """The profile of a loop over `steps`, each of which is one region named by its number."""
    profiler = build_profiler({"enable": True, "trace_dir": str(folder), **config}, rank=0)
    assert profiler is not None
    profiler.start(next_step)
    for step in steps:
        with leadline.region(f"work {step}"):
            pass
        profiler.step(step if tell else None)
    return finished(profiler)


def finished(profiler: TrainingProfiler) -> Profile:
    path = profiler.stop()
    assert path is not None
    profile = leadline.open(str(path))
    assert profile.window.steps == profiler.recorded_steps
    return profile


def worked(profile: Profile) -> list[int]:
    """Numbers of the steps whose work the window holds."""
    events, tree = profile.events, profile.tree
    names = [tree.node(int(node)).name for node in events["node"]]
    return sorted(int(name.split()[1]) for name in names if name.startswith("work "))
