"""XLA's operations in the trace window, and which waited for which."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.jax.conftest import Ran, measured

from leadline.profiles import Profile

Traced = Callable[..., "Window"]


class Window:
    """Events of a window by name, with the operation that they execute."""

    def __init__(self, profile: Profile) -> None:
        events, tree = profile.events, profile.tree
        frames = tree.frame_of[events["node"]]
        self.names = np.array([tree.text("name", int(frame)) for frame in frames.tolist()], dtype=object)
        self.thread = events["thread"]
        self.begin = events["start_ns"]
        self.end = events["start_ns"] + events["duration_ns"]
        self.run = events["correlation"].astype(int)
        self.path = [[frame.name for frame in tree.node(int(node)).path()] for node in events["node"].tolist()]
        found = profile.window.edges
        self.edges = list(zip(found["source"].tolist(), found["target"].tolist(), found["kind"].tolist(), strict=True))
        self.profile = profile

    def of(self, kind: str) -> Counter[tuple[str, str]]:
        """How often an event of one name waited for one of another."""
        return Counter((self.names[one], self.names[other]) for one, other, of in self.edges if of == kind)


@pytest.fixture
def traced(run: Callable[..., Ran]) -> Traced:
    def traced(way: str, *options: str) -> Window:
        ran = run("traced.py", way, options=("--trace", "steps=3", *options))
        assert [loss.detail for loss in ran.profile.losses] == []
        return Window(ran.profile)

    return traced


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return measured(tmp_path_factory.mktemp("plain"), "traced.py", "plain", options=("--trace", "steps=3"))


def test_operations_are_events_on_the_threads_that_ran_them_and_wait_for_their_operands(plain: Ran) -> None:
    assert [loss.detail for loss in plain.profile.losses] == []
    window = Window(plain.profile)
    assert Counter(window.names.tolist()) == {"step": 3, "jit(chain)": 3, "sin": 3, "cos": 3, "dot_general": 9}
    assert window.of("compiled") == {
        ("sin", "dot_general"): 3,
        ("cos", "dot_general"): 3,
        ("dot_general", "dot_general"): 6,
    }
    assert window.of("launch") == {("jit(chain)", "sin"): 3, ("jit(chain)", "cos"): 3}
    for source, target, _ in window.edges:
        assert window.begin[source] < window.begin[target] and window.run[source] == window.run[target] > 0
    main = next(row for row, thread in enumerate(window.profile.threads) if thread.name == "main")
    of_pool = np.isin(window.names, ["sin", "cos", "dot_general"])
    assert set(window.thread[~of_pool].tolist()) == {main} and main not in window.thread[of_pool]
    assert all("main" in path and "chain" in path for path, inside in zip(window.path, of_pool, strict=True) if inside)
    calls = window.names == "jit(chain)"
    steps = window.profile.events["step"]
    assert steps[calls].tolist() == sorted(set(steps[calls].tolist()))  # one in each


def test_operations_of_a_loop_wait_for_what_was_made_last(traced: Traced) -> None:
    window = traced("loop")
    found = window.of("compiled")
    assert found["sin", "dot_general"] == 3 * 5
    pairs = [(one, other) for one, other, kind in window.edges if kind == "compiled" and window.names[one] == "sin"]
    assert len({one for one, _ in pairs}) == len(pairs)  # each of its own turn


def test_what_a_step_has_asked_for_is_in_the_window_though_it_runs_later(traced: Traced) -> None:
    window = traced("ahead")
    assert Counter(window.names.tolist())["dot_general"] == 9
    assert len(set(window.run[window.names == "sin"].tolist())) == 3


def test_a_program_of_two_frameworks_has_the_edges_of_both(traced: Traced) -> None:
    pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")
    window = traced("torch")
    assert window.of("compiled")["sin", "dot_general"] == 3
    backward = window.of("backward")
    assert any("MmBackward" in one or "SinBackward" in one for pair in backward for one in pair)


def test_a_window_in_seconds_needs_no_steps(run: Callable[..., Ran]) -> None:
    window = Window(run("flax_loop.py", options=("--trace", "seconds=60,wait=0")).profile)
    operations = [name for name, run_number in zip(window.names, window.run, strict=True) if run_number]
    assert operations.count("jit(train_step)") > 100
    assert window.of("compiled").total() > 1000


def test_exports_and_tables_have_them(plain: Ran, tmp_path: Path) -> None:
    file = str(plain.folder / "traced.py.leadline")
    leadline = [sys.executable, "-m", "leadline"]
    shown = subprocess.run([*leadline, "timeline", file], capture_output=True, text=True, check=True, timeout=60)
    assert "tf_XLA" in shown.stdout and "xxx" in shown.stdout
    table = [*leadline, "stats", file, "--by", "operator", "--csv"]
    stats = subprocess.run(table, capture_output=True, text=True, check=True, timeout=60).stdout
    assert any("dot_general" in line for line in stats.splitlines())
    out = tmp_path / "out.json"
    export = [*leadline, "export", file, "--format", "perfetto", "-o", str(out)]
    subprocess.run(export, check=True, capture_output=True, timeout=60)
    assert b"dot_general" in out.read_bytes()
