"""Checks every profile that a test leaves behind: a measured file that contradicts itself fails the test that made it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_LARGEST_BYTES = 4 << 20
"""Of a file; larger ones come from tests of size, and checking them would take seconds each."""
_DRAWN = "0.0.0"
"""What `leadline.profiles.builder` puts into `meta.leadline`: such a profile was not measured."""

KNOWN: dict[str, str] = {
    "tests/torch/test_stress.py::test_start_and_stop_while_threads_compute": "threads are inside operators when measuring "
    "stops: what ended in them is booked, the call itself never ended",
}
"""Tests whose profiles may contradict themselves, and why."""

_seen: set[tuple[int, int, int]] = set()


def _folders(item: pytest.Item) -> Iterator[Path]:
    """Where this test wrote: `tmp_path`, and folders that other fixtures gave it."""
    for value in getattr(item, "funcargs", {}).values():
        place = getattr(value, "folder", value)
        if isinstance(place, Path) and place.is_dir():
            yield place


def _new_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.leadline")):
        try:
            state = path.stat()
        except OSError:
            continue
        key = (state.st_ino, state.st_mtime_ns, state.st_size)
        if path.is_file() and state.st_size <= _LARGEST_BYTES and key not in _seen:
            _seen.add(key)
            yield path


def complaints(folders: Iterator[Path] | list[Path]) -> list[str]:
    """What is wrong with the measured profiles below the folders that have not been checked yet."""
    try:
        from tests.truth.invariants import contradictions

        from leadline.profiles import ProfileFileError, open_profile
    except ImportError:  # a run without NumPy makes no profiles that could be read
        return []
    found: list[str] = []
    for path in (path for folder in folders for path in _new_files(folder)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # duplicate names in damaged archives
                profile = open_profile(path)
        except (ProfileFileError, OSError):
            continue  # tests of the reader leave damaged files
        if profile.meta.get("leadline") not in (_DRAWN, ""):
            found += [f"{path.name}: {sentence}" for sentence in contradictions(profile)]
    return found


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    result: Any = yield
    excused = item.get_closest_marker("untrue") is not None or item.nodeid.partition("[")[0] in KNOWN
    if not excused and (wrong := complaints(_folders(item))):
        shown = "\n".join(wrong[:20])
        pytest.fail(f"A profile of this test contradicts itself (tests/truth/invariants.py):\n{shown}", pytrace=False)
    return result
