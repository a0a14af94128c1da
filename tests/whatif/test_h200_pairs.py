"""Predictions from one recorded step of four programs on an H200, beside what the changed programs took there.

The outcomes were known when the rules were written (bench/results/whatif_gpu.md): this guards what was understood, and
says nothing about programs that nobody has measured.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from h200_traces import written

from leadline.whatif.graph import Graph
from leadline.whatif.kinds import TaskKind
from leadline.whatif.load import load
from leadline.whatif.predict import Prediction, predict, rank, replay
from leadline.whatif.render import as_text

AMP = {
    "resnet50": (32.672, 29.144),
    "encoder": (113.680, 37.204),
    "decoder": (146.080, 31.137),
    "recommender": (12.903, 13.638),
}
FUSED = {"resnet50": (32.672, 32.214), "encoder": (113.680, 112.311), "decoder": (146.080, 144.521)}
"""Milliseconds of a step without a recorder, before and after the change."""


@lru_cache(maxsize=4)
def graph_of(model: str) -> Graph:
    with TemporaryDirectory() as folder:
        return load(written(model, Path(folder)))


@lru_cache(maxsize=8)
def amp(model: str) -> Prediction:
    return predict(graph_of(model), ["amp"], {"dtype": "bf16"}).scenarios[0]


@pytest.mark.parametrize("model", AMP)
def test_mixed_precision(model: str) -> None:
    before, after = AMP[model]
    found = amp(model)
    assert before / found.speedup == pytest.approx(after, rel=0.25)
    assert before / found.high_gain <= after <= before / found.low_gain


@pytest.mark.parametrize("model", FUSED)
def test_fused_adam(model: str) -> None:
    before, after = FUSED[model]
    found = predict(graph_of(model), ["fused_optimizer"]).scenarios[0]
    assert before / found.speedup == pytest.approx(after, rel=0.002)
    assert before / found.high_gain <= after <= before / found.low_gain


@pytest.mark.parametrize("model", AMP)
def test_the_replay_is_as_recorded(model: str) -> None:
    """What recording cost is left out of predictions, not of the replay; a change of nothing gains nothing."""
    graph = graph_of(model)
    assert abs(replay(graph).replay_error) < 1e-6
    same = predict(graph, ["faster"], {"device": "gpu", "factor": "1"}).scenarios[0]
    assert same.speedup == pytest.approx(1, abs=1e-9)
    assert (same.low_gain, same.high_gain) == (pytest.approx(1, abs=1e-9), pytest.approx(1, abs=1e-9))


@pytest.mark.parametrize(("model", "waited_ms"), [("encoder", 39.3), ("decoder", 87.3)])
def test_waits_for_a_full_queue_are_no_work(model: str, waited_ms: float) -> None:
    """CUPTI's records of "Command Buffer Full" in the whole traces say what a step waited."""
    graph = graph_of(model)
    calls = graph.select(kind=TaskKind.CPU, name=r"^cu(da)?(Launch|Mem)").ids
    less = (graph.column("measured_ns")[calls] - graph.column("duration_ns")[calls]).sum()
    assert less / 1e6 == pytest.approx(waited_ms, rel=0.05)


def test_a_sentence_says_what_was_left_out() -> None:
    told = " ".join(amp("encoder").assumptions)
    assert "what recording cost each operator, 1.2 µs, is left out of both times" in told
    assert (
        "calls on the CPU are slower while the device is behind, so 60 % of their time counts (50 % to 100 %)" in told
    )
    waits_for_its_calls = " ".join(amp("recommender").assumptions)
    assert "left out of both times" in waits_for_its_calls and "is behind" not in waits_for_its_calls


def test_the_ranking_says_it_once() -> None:
    text = as_text(rank(graph_of("encoder")), ranked=True)
    assert text.count("is left out of both times") == 1
