"""Programs without a device: an operator's real work may follow what it called, and that time is its own."""

from __future__ import annotations

import pytest

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.gpus import technique
from leadline.whatif.kinds import LaneKind, Phase, TaskKind
from leadline.whatif.selftime import SelfTimes

US = 1000


@pytest.fixture
def program():
    """Python 50; addmm: 10, then resolve_conj 2 with 388 of addmm behind it; relu 40; update: add_ 60."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    builder.task("(python)", TaskKind.CPU, main, 50 * US, phase=Phase.FORWARD)
    product = builder.task("aten::addmm", TaskKind.CPU, main, 10 * US, phase=Phase.FORWARD)
    builder.task("aten::resolve_conj", TaskKind.CPU, main, 2 * US, gap_ns=388 * US, parent=product, phase=Phase.FORWARD)
    builder.task("aten::relu", TaskKind.CPU, main, 40 * US, phase=Phase.FORWARD)
    builder.task("aten::add_", TaskKind.CPU, main, 60 * US, phase=Phase.OPTIMIZER)
    return builder.graph()


def test_time_behind_a_callee_belongs_to_the_caller(program):
    total = SelfTimes(program).total_ns()
    assert total.tolist() == [50 * US, 398 * US, 2 * US, 40 * US, 60 * US]
    assert total.sum() == 550 * US


def test_an_operator_becomes_faster_with_all_its_own_time(program, ask):
    found = ask(program, "kernel_speedup", kernel="addmm", factor="2")
    assert found.predicted_ns == (50 + 199 + 2 + 40 + 60) * US
    assert ask(program, "kernel_speedup").predicted_ns == found.predicted_ns, "the most expensive one"


def test_python_does_not_grow_with_the_batch(program, ask):
    """Operators lose at most 10 us each to the call itself; Python and the update stay."""
    found = ask(program, "batch_size", factor="2")
    assert (550 + 440 - 3 * 10) * US <= found.predicted_ns <= (550 + 440) * US
    assert found.predicted_ns - (50 + 60) * US < 2 * 440 * US


def test_fused_optimizer_on_a_cpu(program, ask):
    """Plain SGD moves as many values fused as apart; the call itself costs what it costs, at most what it replaces."""
    found = ask(program, "fused_optimizer")
    call = technique("fused_optimizer_call_ns", larger_is_faster=False).expected
    assert found.predicted_ns == 490 * US + min(60 * US, call + 60 * US)


def test_a_faster_processor_shortens_gaps_too(program, ask):
    assert ask(program, "faster", device="cpu", factor="2").predicted_ns == 275 * US


@pytest.mark.parametrize("scenario", ["amp", "precision", "launch_free", "fuse_elementwise", "vdnn", "gist"])
def test_gpu_questions_do_not_apply(program, ask, scenario):
    with pytest.raises(ValueError, match="does not apply"):
        ask(program, scenario)


def test_checkpointing_recomputes_all_of_an_operators_time(ask):
    """A linear layer of 10 + 390 us in forward, 500 in backward: 400 us more."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    product = builder.task("aten::addmm", TaskKind.CPU, main, 10 * US, phase=Phase.FORWARD, layer="linear")
    builder.task(
        "aten::resolve_conj",
        TaskKind.CPU,
        main,
        0,
        gap_ns=390 * US,
        parent=product,
        phase=Phase.FORWARD,
        layer="linear",
    )
    builder.task("aten::mm", TaskKind.CPU, main, 500 * US, phase=Phase.BACKWARD, layer="linear")
    assert ask(builder.graph(), "activation_checkpointing").predicted_ns == 1300 * US
