"""Where a thread's time went, through the whole chain: a real program, its profile, the split of each thread.

What is known by construction bounds a part from one side, whatever else the machine does: sleeping lasts at least as
long as asked, CPU time is used up exactly, and nothing is counted twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.torch.frames import statements
from tests.torch.waiting import WAIT_S

from leadline.analysis import Analysis
from leadline.analysis.timesplit import Split
from leadline.profiles import Profile, open_profile

torch = pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

PROGRAM = Path(__file__).with_name("waiting.py")
WAIT_NS = int(WAIT_S * 1e9)
SMALL_NS = WAIT_NS // 3
"""What a part holds that has next to nothing to do: start-up of a worker, a few batches."""


def run(which: str, output: Path) -> None:
    path = os.pathsep.join([str(PROGRAM.parents[2]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(PROGRAM), which, str(output)]
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr


def splits_of(which: str, folder: Path) -> tuple[Profile, list[Split]]:
    output = folder / "waits.leadline"
    run(which, output)
    profile = open_profile(output)
    return profile, Analysis(profile).time_splits


def main_split(splits: list[Split]) -> Split:
    return next(split for split in splits if split.main)


def waited(profile: Profile) -> int:
    return profile.tree.root.inclusive("wait_time").sum


def test_a_loader_that_computes_is_data_and_waits_for_nobody(tmp_path: Path) -> None:
    profile, splits = splits_of("computing loader", tmp_path)
    parts = main_split(splits).parts_ns
    assert parts["data"] >= WAIT_NS
    assert parts["python"] < SMALL_NS  # its CPU time is not taken for Python's
    assert waited(profile) == 0


def test_a_worker_that_sleeps_lets_the_main_thread_wait(tmp_path: Path) -> None:
    profile, splits = splits_of("sleeping worker", tmp_path)
    parts = main_split(splits).parts_ns
    assert parts["data"] >= WAIT_NS
    phases = profile.tree.find(kind="phase", name="data loading")
    (loading,) = (node for node in phases if node.inclusive("wait_time").sum)
    assert WAIT_NS * 0.9 < loading.inclusive("wait_time").sum <= loading.inclusive("time").sum
    assert waited(profile) == loading.inclusive("wait_time").sum


def test_two_threads_that_fight_for_the_interpreter_each_idle_half_of_it(tmp_path: Path) -> None:
    profile, splits = splits_of("fight", tmp_path)
    assert len(splits) == 2
    for split in splits:
        assert split.parts_ns["python"] >= WAIT_NS * 0.9
    main = main_split(splits)
    # One lock: while the other thread ran, which is as long as it computed, this one did not.
    assert main.parts_ns["idle"] >= WAIT_NS * 0.9
    assert set(main.estimated) == {"python", "idle"}
    assert waited(profile) == 0


def test_a_main_thread_that_sleeps_is_idle(tmp_path: Path) -> None:
    _, splits = splits_of("sleeping main", tmp_path)
    assert main_split(splits).parts_ns["idle"] >= WAIT_NS
    assert main_split(splits).parts_ns["python"] < SMALL_NS


def test_a_rank_that_is_early_waits_for_the_late_one_in_its_collective(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("This torch has no gloo, so two ranks on one machine cannot talk.")
    run("late rank", tmp_path)
    early, late = (open_profile(tmp_path / f"{rank}.leadline") for rank in (0, 1))
    line = next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "# rank 0 waits" in text)

    def reduction(profile: Profile) -> int:
        """Waited in the reduction; the barrier before it depends on who is there first."""
        waits = profile.tree.find(kind="region", name="Work.wait")
        here = [
            node for node in waits if (str(PROGRAM), line) in {(file, number) for file, _, number in statements(node)}
        ]
        return sum(node.inclusive("wait_time").sum for node in here)

    assert reduction(early) >= WAIT_NS * 0.9
    assert reduction(late) < SMALL_NS
    parts = main_split(Analysis(early).time_splits).parts_ns
    assert reduction(early) <= parts["communication"] <= waited(early) + SMALL_NS  # counted once
    late_parts = main_split(Analysis(late).time_splits).parts_ns
    assert late_parts["idle"] >= WAIT_NS * 0.9  # asleep, not in the collective


def test_a_wait_that_outlives_its_session_ends_nothing_in_the_next(monkeypatch) -> None:
    from leadline.capture.current import CURRENT
    from leadline.capture.providers.torch.waits import KnownWaits

    class Native:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def region_begin(self, name, detail) -> int:
            self.calls.append("begin")
            return 7

        def region_end(self, token) -> None:
            self.calls.append("end")

        def waited(self, ns) -> None:
            self.calls.append("waited")

    native = Native()
    monkeypatch.setattr(CURRENT, "native", native)
    monkeypatch.setattr(CURRENT, "generation", 1)
    waits = KnownWaits(native)
    waits._communicating(lambda: None)()
    assert native.calls == ["begin", "waited", "end"]
    native.calls.clear()
    waits._communicating(lambda: monkeypatch.setattr(CURRENT, "generation", 2))()
    assert native.calls == ["begin"]
