"""What `fused=True` is said to gain: what it spares is calls of operators, and passes over memory where it has fewer.

Measured on two programs of one thread, `step()` in turns with and without (bench/results/fused_optimizer.md). Adam:
3 matrices of [2048, 2048] 89 to 20 ms, 400 vectors of 16 elements 30 to 4.2 ms. SGD without momentum: the matrices 8.0 to
8.0 ms, the vectors 2.3 to 0.8 ms. RMSprop with foreach=True: the matrices 61 to 66 ms, the vectors 21 to 8 ms.
"""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, training
from tests.analysis.test_place import operator

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding


def update(kind: str, name: str, calls: int, ms: float, *more: str) -> Finding:
    """An optimizer of `calls` operators in ten steps, which take `ms` of a step, with further lines of its phase."""
    phase = f'phase optimizer | time=0/10 call_time={int(ms * 10 * MS)}/10 detail={{"optimizer":"{kind}"}}'
    inside = (phase, "  " + operator("", name, ms, calls), *("  " + one for one in more))
    profile = training("python main @ /home/ada/train.py:43", *("  " + one for one in inside), optimizer_ms=0)
    (found,) = (one for one in analyze(profile).findings if one.rule == "optimizer_loop")
    return found


@pytest.mark.parametrize(
    ("kind", "name", "calls", "ms", "spared"),
    [
        ("Adam", "aten::mul_", 420, 89, 0.77),
        ("Adam", "aten::mul_", 100_000, 30, 0.86),
        ("SGD", "aten::add_", 420, 8, 0.0),
        ("SGD", "aten::add_", 4_000, 2.3, 0.67),
        ("RMSprop", "aten::mul_", 420, 61, 0.0),
        ("RMSprop", "aten::mul_", 60_000, 21, 0.61),
    ],
)
def test_the_gain_follows_from_what_one_call_for_all_parameters_spares(kind, name, calls, ms, spared):
    gain = update(kind, name, calls, ms).gain
    assert gain.expected_ns / (ms * MS) == pytest.approx(spared, abs=0.25)
    assert gain.high_ns <= ms * MS


def test_waits_for_a_core_are_not_what_a_fused_update_spares():
    """Half of the update stands in line, and the quickest call of 50 takes a tenth of the mean."""
    calls, ms = 50, 100
    taken = ms * 10 * MS // calls
    each = ",".join(str(one) for one in (taken // 10, taken + taken * 9 // 10, *[taken] * (calls - 2)))
    slow = f"operator aten::mul_ | time={each} call_time={each}"
    line = f'native [waits for a core] | detail={{"wait":"core"}} wait={ms * 5 * MS}/10'
    phase = f'phase optimizer | time=0/10 call_time={ms * 10 * MS}/10 detail={{"optimizer":"AdamW"}}'
    many = "operator aten::copy_ | time=1000/1000 call_time=1000/1000"
    lines = ("python main @ /home/ada/train.py:43", f"  {phase}", f"    {slow}", f"    {many}", f"    {line}")
    (found,) = (one for one in analyze(training(*lines, optimizer_ms=0)).findings if one.rule == "optimizer_loop")
    assert found.gain.expected_ns < 0.1 * ms * MS
    assert found.gain.high_ns < 0.5 * ms * MS
