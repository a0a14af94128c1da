"""A second profile with another batch size settles how each kind of work grows, one profile could only guess."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dialects import CPU_DIALECTS, program, write

from leadline.cli.main import main
from leadline.whatif import GraphError, load, predict, with_evidence


def drawn(batch: int, folder: Path) -> Path:
    """The drawn program at a batch: products grow with its square root, the update not at all."""
    events = []
    for event in program(device=False):
        if event.name == "aten::addmm":
            grown = event.length * (batch / 4) ** 0.5 * 0.5
            event = replace(event, length=grown, shapes=((64,), (batch, 64), (64, 64)))
        events.append(event)
    path = folder / f"batch{batch}.json"
    path.write_text(json.dumps(write(events, CPU_DIALECTS[0])))
    return path


def test_two_batch_sizes_tell_what_grows(tmp_path: Path) -> None:
    graph = load(drawn(4, tmp_path))
    both = with_evidence(graph, load(drawn(8, tmp_path)))
    evidence = both.info.evidence
    assert evidence is not None and evidence.batch_ratio == 2
    assert evidence.exponents["aten::addmm"] == pytest.approx(0.5, rel=1e-3)
    assert evidence.exponents["aten::_foreach_add_"] == pytest.approx(0.0, abs=1e-6)
    (found,) = predict(both, ["batch_size"], {"factor": "4"}).scenarios
    (guess,) = predict(graph, ["batch_size"], {"factor": "4"}).scenarios
    # loading in the loop takes four times as long (30 ms more), the products twice as long, the rest stays
    products_ns = 3 * 500_000
    assert found.predicted_ns == pytest.approx(graph.info.measured_ns / 4 + 30e6 + products_ns, rel=0.03)
    assert found.speedup > guess.speedup, "most of the step does not grow, which one profile cannot know"
    assert any("a batch 2 times as large" in text for text in found.assumptions)


def test_a_second_profile_that_settles_nothing_is_refused(tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text(json.dumps(write(program(device=False), CPU_DIALECTS[0])))
    with pytest.raises(GraphError, match="adds no evidence"):
        with_evidence(load(one), load(one))


def test_the_command_takes_a_second_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = str(drawn(4, tmp_path)), str(drawn(8, tmp_path))
    arguments = ["whatif", first, "--with", second, "--scenario", "batch_size", "--set", "factor=2"]
    assert main(arguments) == 0
    assert "2 times as large" in capsys.readouterr().out
    assert main(["whatif", first, "--with", first]) != 0
    assert "adds no evidence" in capsys.readouterr().err
