"""bench/gpu/whatif_pairs.py without a GPU: which pairs it takes, and that one call makes its table from what a GPU would
give, whatever single pairs meet."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.trace.damaged import sample

from leadline.whatif import Graph, load

pytest.importorskip("torch", reason="the script measures programs of torch")
BENCH = Path(__file__).parents[2] / "bench"
CHANGES = ("AMP (bf16)", "fused Adam", "batch x2", "compile")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    before = set(sys.modules)
    for folder in ("gpu", "whatif", "."):
        monkeypatch.syspath_prepend(str(BENCH / folder))
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script adds to it as well
    import whatif_pairs  # type: ignore[import-not-found]

    yield whatif_pairs
    for name in ("whatif_pairs", "gpu_steps", "gpu_models", "outcomes", "trace_summary", "common"):
        if name not in before:
            sys.modules.pop(name, None)


@pytest.fixture
def gpu_trace(tmp_path: Path) -> Graph:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(sample()), encoding="utf-8")
    return load(path)


def test_every_change_on_four_models(script: ModuleType) -> None:
    names = [pair.name for pair in script.pairs(tiny=False)]
    models = {name.partition(":")[0] for name in names}
    assert len(models) == 4
    assert {f"{model}: {change}" for model in models for change in CHANGES} <= set(names)
    assert {"resnet50: channels_last", "resnet50: loader workers 0 to 4"} <= set(names)
    for pair in script.pairs(tiny=True):
        assert pair.before != pair.after and pair.before.tiny


def test_tiny_models_take_steps(script: ModuleType) -> None:
    """Forward, backward and update of all four, and batches from a loader, on the CPU."""
    for name in script.MODELS:
        runner = script.Runner(script.Program(name, 2, tiny=True, workers=0), "cpu")
        first = next(iter(runner.optimizer.param_groups[0]["params"])).detach().clone()
        assert runner.timed(1, 2) > 0
        assert not first.equal(next(iter(runner.optimizer.param_groups[0]["params"])))


def test_one_call_makes_the_table(
    script: ModuleType, gpu_trace: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []

    class Fake:
        """Stands for a program on a GPU: 2 ms a step; a compiler that is missing costs only its own pairs."""

        def __init__(self, program: Any, device: str) -> None:
            if program.compiled:
                raise RuntimeError("no C compiler\nand more")
            taken.append(program)
            self.program = program

        def timed(self, rounds: int, steps: int) -> float:
            return 0.002

        def step(self) -> None: ...

        def close(self) -> None: ...

    monkeypatch.setattr(script, "Runner", Fake)
    monkeypatch.setattr(script, "profiled", lambda step, activities, **_: gpu_trace)
    assert script.main(["--device", "cpu", "--results", str(tmp_path)]) == 1
    table = (tmp_path / "whatif_gpu_pairs.md").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "whatif_gpu_pairs.json").read_text(encoding="utf-8"))["pairs"]
    assert {row["pair"].partition(": ")[2] for row in rows} == {
        "AMP (bf16)", "fused Adam", "batch x2", "channels_last", "loader workers 0 to 4",
    }  # fmt: skip
    assert "Not measured: decoder: compile: RuntimeError: no C compiler." in table
    assert "AMP below 13 %" in table
    # a program that stands before several changes is measured once
    assert len(taken) == len(set(taken))
    summaries = json.loads((tmp_path / "whatif_gpu_traces.json").read_text(encoding="utf-8"))
    assert len(summaries) == 5
    for found in summaries.values():
        assert found["device_ns_by_kernel"]["ampere_sgemm_64x64_tn"] == 2 * 3 * 80_000
        assert abs(found["replay_error"]) < 0.01


def test_no_time_left_is_named(script: ModuleType, tmp_path: Path) -> None:
    assert script.main(["--device", "cpu", "--seconds", "-1", "--results", str(tmp_path)]) == 1
    table = (tmp_path / "whatif_gpu_pairs.md").read_text(encoding="utf-8")
    assert table.count("no time left") == len(script.pairs(tiny=True))
