"""Programs without a device: an operator's real work may follow what it called, and that time is its own."""

from __future__ import annotations

import pytest

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.draws import technique
from leadline.whatif.kinds import LaneKind, Phase, TaskKind
from leadline.whatif.predict import Prediction
from leadline.whatif.selftime import SelfTimes

US = 1000


def edited_ns(found: Prediction) -> float:
    """The step of the edited graph as it is, with what recording cost."""
    assert found.result is not None
    return found.result.makespan_ns / len(found.result.steps)


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
    assert edited_ns(found) == (50 + 199 + 2 + 40 + 60) * US
    assert edited_ns(ask(program, "kernel_speedup")) == edited_ns(found), "the most expensive one"


def test_python_does_not_grow_with_the_batch(program, ask):
    """Operators lose at most 10 us each to the call itself; Python and the update stay."""
    found = ask(program, "batch_size", factor="2")
    more = 2 ** growth_expected() - 1
    assert (550 + (440 - 3 * 10) * more) * US <= found.predicted_ns <= (550 + 440 * more) * US
    assert found.predicted_ns - (50 + 60) * US < (1 + more) * 440 * US


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
    assert edited_ns(ask(builder.graph(), "activation_checkpointing")) == 1300 * US


def growth_expected():
    return technique("cpu_batch_growth", larger_is_faster=False).expected


def shaped(step, name, us, shapes, phase=Phase.FORWARD, **more):
    """A CPU operator on float tensors of these shapes."""
    task = step.cpu(name, us, phase, **more)
    step.details[task] = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
    return task


WIDE = [1024, 1024]
WIDE_BYTES = 4 * 1024 * 1024


@pytest.mark.parametrize(("lists", "stays_us"), [(False, 900), (True, 7 * 920 / 11)])
def test_a_fused_update_takes_as_long_as_what_changes_parameters_and_states(step, ask, lists, stays_us):
    """lerp_, mul_ and addcdiv_ move 3 + 2 + 4 tensors in 900 us, the sum for the denominator 2 in 20; sqrt and div
    spend 9 ms, most of it on new memory. Tensor by tensor the first three stay, since what they do again is in the
    cache; list by list each waits for memory, and the fused step for 7 tensors instead of 11."""
    prefix = "aten::_foreach_" if lists else "aten::"
    for name, us, tensors in (("lerp_", 300, 2), ("mul_", 200, 1), ("addcdiv_", 400, 3), ("add_", 20, 1)):
        shaped(step, f"{prefix}{name}", us, [WIDE] * tensors, Phase.OPTIMIZER)
    for name in ("sqrt", "div"):
        shaped(step, f"{prefix}{name}", 4500, [WIDE], Phase.OPTIMIZER)
    call = technique("fused_optimizer_call_ns", larger_is_faster=False).expected
    found = ask(step.graph(), "fused_optimizer")
    assert edited_ns(found) == pytest.approx(stays_us * US + call, rel=1e-6)
    assert found.low_ns < found.predicted_ns < found.high_ns


def test_a_fused_update_with_momentum_spares_only_calls(step, ask):
    """Nothing of SGD is temporary: every operator brings another tensor into the cache, as a fused step must."""
    for name, tensors in (("mul_", 1), ("add_", 2), ("add_", 2)):
        shaped(step, f"aten::{name}", 300, [WIDE] * tensors, Phase.OPTIMIZER)
    call = technique("fused_optimizer_call_ns", larger_is_faster=False).expected
    assert edited_ns(ask(step.graph(), "fused_optimizer")) == min(900 * US + call, 900 * US)


def test_clearing_gradients_does_not_grow_with_the_batch(step, ask):
    """relu grows, the gradients' zeros and their sums do not. Views of 1 us tell that a call costs 4 us at most."""
    shaped(step, "aten::relu", 104, [[64, 512]])
    shaped(step, "aten::fill_", 500, [WIDE], Phase.BACKWARD)
    shaped(step, "aten::add_", 301, [WIDE, WIDE], Phase.BACKWARD, operator="torch::autograd::AccumulateGrad")
    for _ in range(5):
        shaped(step, "aten::view", 1, [[64, 512]])
    shaped(step, "aten::add_", 50, [WIDE, WIDE], Phase.OPTIMIZER)
    found = ask(step.graph(), "batch_size", factor="2")
    assert edited_ns(found) == pytest.approx((960 + 100 * (2 ** growth_expected() - 1)) * US, rel=1e-5)
    assert found.low_ns < 0.95 * found.predicted_ns, "what one trace cannot tell of a batch is in the range"


def test_reading_the_weights_does_not_grow_with_the_batch(step, ask):
    """A product of 2 ms reads weights of 4 MiB and lays them out; relu and add_ say that a byte takes 0.1 ns: 0.84 ms of
    it stay."""
    relu, update = (tensors * WIDE_BYTES * 0.1 for tensors in (2, 3))
    shaped(step, "aten::relu", relu / US, [WIDE])
    shaped(step, "aten::mm", 2000, [[64, 1024], WIDE])
    for _ in range(5):
        step.cpu("aten::view", 0, Phase.FORWARD)
    shaped(step, "aten::add_", update / US, [WIDE, WIDE], Phase.OPTIMIZER)
    found = ask(step.graph(), "batch_size", factor="2")
    more = 2 ** growth_expected() - 1
    grows = relu + 2000 * US - 2 * WIDE_BYTES * 0.1
    assert edited_ns(found) == pytest.approx(relu + 2000 * US + grows * more + update, rel=1e-4)


def test_threads_divide_large_operators_only(step, ask):
    """The product and the large relu become 1.9 times faster and start threads; the small relu and Python stay."""
    shaped(step, "aten::mm", 1000, [[64, 1024], WIDE])
    shaped(step, "aten::relu", 190, [WIDE])
    shaped(step, "aten::relu", 10, [[64, 64]])
    step.cpu("(python)", 300)
    measured = ask(step.graph(), "cpu_threads", threads="2", scaling="1.9")
    start = technique("cpu_fork_join_ns", larger_is_faster=False).expected
    assert edited_ns(measured) == pytest.approx(1190 * US / 1.9 + 2 * start + 310 * US, rel=1e-5)
    share = technique("cpu_thread_scaling", larger_is_faster=True).expected
    guessed = ask(step.graph(), "cpu_threads", threads="4")
    large = 1000 / (1 + 3 * share) + 190 / (1 + 3 * share)
    assert edited_ns(guessed) == pytest.approx(large * US + 2 * start + 310 * US, rel=1e-5)
    assert guessed.low_ns < guessed.predicted_ns < guessed.high_ns
    assert ask(step.graph(), "cpu_threads", threads="1").speedup == 1


def test_threads_must_be_told(step, ask):
    shaped(step, "aten::mm", 1000, [[64, 1024], WIDE])
    with pytest.raises(ValueError, match="--set threads="):
        ask(step.graph(), "cpu_threads")


def test_ranges_are_as_wide_as_the_steps_differ(step, ask):
    """Steps of 1, 2 and 3 ms tell the mean of all far worse than three of 2 ms each."""
    for number, us in enumerate((1000, 2000, 3000)):
        step.step = number
        step.cpu("aten::mm", us)
    widths = []
    for steps in ((1000 * US, 2000 * US, 3000 * US), (2000 * US, 2000 * US, 2000 * US)):
        found = ask(step.graph(step_ns=steps, measured_ns=6000 * US), "faster", device="cpu")
        assert found.predicted_ns == 1000 * US
        widths.append((found.high_ns - found.low_ns) / found.predicted_ns)
    assert 0.05 < widths[1] < 0.25 < 0.75 < widths[0] < 2


def test_what_recording_cost_small_operators_is_no_gain(ask):
    """An update of 400 operators of 2 us, of which recording was 1.2, beside one of 8 ms: what goes is 0.32 of 8.32 ms,
    not 0.8 of 8.8."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    builder.task("aten::mm", TaskKind.CPU, main, 8000 * US + 1200, phase=Phase.FORWARD)
    for _ in range(400):
        builder.task("aten::mul_", TaskKind.CPU, main, 2 * US, phase=Phase.OPTIMIZER)
    found = ask(builder.graph(), "kernel_speedup", kernel="mul_", factor="1000000")
    assert found.speedup == pytest.approx(8.32 / 8, rel=1e-3)
    assert found.low_gain < 8.32 / 8 < found.high_gain
    assert any("recording cost" in text for text in found.assumptions)
