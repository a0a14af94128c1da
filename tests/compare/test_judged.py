"""The verdict is on the ratio that is shown, its interval holds that ratio, and a change that was planted is told."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.cli import main as cli
from leadline.compare import Limits, compare, judge, limits
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile
from leadline.report.comparison import text_comparison
from leadline.trace.importers import import_traces

TRACES = Path(__file__).parents[3] / "shared" / "traces"


def drawn(
    calls: list[int], *, steps: list[int] | None = None, relu: int = 50, running: int = 0, in_line: int = 0
) -> Profile:
    """A loop of `len(calls)` steps with one product each; `steps`: their wall times, where they were measured."""
    each = lambda values: ",".join(map(str, values))  # noqa: E731
    waited = f" step_core_wait={each([in_line] * len(steps))}" if steps and in_line else ""
    marks = f"    phase step | call_time={each(steps)}{waited}\n" if steps else ""
    ran = f" operator_running_time={running}/{len(calls)}" if running else ""
    return build(
        f"""
process train.py | pid=7
  thread main
{marks}    python train @ /a/train.py:5 | first_line=1
      operator aten::mm | time={each(calls)} call_time={each(calls)}{ran}
      operator aten::relu | time={relu * len(calls)}/{len(calls)} call_time={relu * len(calls)}/{len(calls)}
    python train @ /a/train.py:6 | first_line=1
      phase optimizer | time={10 * len(calls)}/{len(calls)} call_time={10 * len(calls)}/{len(calls)}
""".lstrip("\n")
    )


def noisy(mean: float, seed: int, steps: int = 200, spread: float = 0.05) -> Profile:
    """Steps that differ by `spread` of their mean, of which nearly all is one operator."""
    draw = random.Random(seed)
    taken = [round(mean * draw.gauss(1, spread)) for _ in range(steps)]
    return drawn([value - 100 for value in taken], steps=taken[1:])


def test_few_runs_on_a_machine_that_others_use_give_no_verdict():
    """Steps that stood in line for a core say how busy the machine was; several runs a side are judged by their ranks."""

    def run(mean: int, in_line: int) -> Profile:
        return drawn([mean - in_line - 100] * 50, steps=[mean] * 49, in_line=in_line)

    quiet, busy = run(1000, 0), run(2000, 1000)
    found = compare([quiet], [busy])
    assert "waiting for a core" in found.doubt
    assert judge(found, Limits()).code == 3
    assert compare([quiet], [run(1000, 400)]).doubt == "", "steps that take as long need no explanation"
    assert compare([quiet], [run(2000, 0)]).doubt == ""
    assert compare([quiet] * 4, [busy] * 4).doubt == ""


_RUNS = st.lists(st.lists(st.integers(500, 9000), min_size=6, max_size=6), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(_RUNS, _RUNS)
def test_a_ratio_lies_between_those_of_the_runs_and_in_its_interval(a, b):
    """Whatever single calls took, but for those beyond 20 times the others, which are first calls."""
    diff = compare([drawn(calls) for calls in a], [drawn(calls) for calls in b])
    times = [[np.median([sum(calls) / 6]) + 60 for calls in side] for side in (a, b)]
    ratios = [after / before for before in times[0] for after in times[1]]
    assert min(ratios) * 0.999 <= diff.step.ratio <= max(ratios) * 1.001
    for figure in (diff.step, diff.work, *(change.time for change in diff.changes)):
        assert figure.low <= figure.ratio <= figure.high
        assert figure.ratio == pytest.approx(figure.b / figure.a)
        if figure.verdict != "no clear change":
            assert (figure.ratio > 1) == (figure.verdict == "slower")
            assert not figure.low <= 1 <= figure.high


def test_a_last_small_batch_decides_nothing():
    """With it the mean is 2.7 % larger; alone it is a hundredth of the others."""
    keep, drop = [1000] * 50 + [10], [1000] * 51
    diff = compare([drawn(keep)], [drawn(drop)])
    assert diff.step.ratio == pytest.approx((1000 + 60) / ((50 * 1000 + 10) / 51 + 60))
    assert judge(diff, Limits(0.05)).code == 0
    assert judge(compare([drawn(drop)], [drawn(keep)]), Limits(0.05)).code == 0
    assert "+1.9 %" in text_comparison(diff)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25, 2.0])
def test_one_run_each_tells_a_change_beyond_the_spread_of_its_steps(factor):
    diff = compare([noisy(1e6, 1)], [noisy(1e6 * factor, 2)])
    assert diff.step.verdict == ("slower" if factor > 1 else "faster")
    assert diff.step.low < factor < diff.step.high
    error = math.sqrt(2 * 0.05**2 / 200)  # of the ratio of two means of 200 steps
    chance = 100 * (limits.BETWEEN_RUNS * math.exp(limits.ERRORS * error) - 1)
    assert f"below {chance:.2g} % may be noise" in diff.smallest
    assert judge(diff, Limits(0.05)).code == (1 if factor > 1 else 0)


@pytest.mark.parametrize("seed", range(10))
def test_one_run_each_tells_nothing_of_the_same_program(seed):
    diff = compare([noisy(1e6, 10 + seed, 60, 0.1)], [noisy(1e6, 50 + seed, 60, 0.1)])
    assert diff.step.verdict == "no clear change"
    assert judge(diff, Limits(0.1)).code == 0


def test_a_step_is_judged_by_the_wall_clock_where_both_sides_have_it():
    """Python between operators grew; the operators did not."""
    before, after = drawn([1000] * 40, steps=[2000] * 39), drawn([1000] * 40, steps=[3000] * 39)
    diff = compare([before], [after])
    assert (diff.step.a, diff.step.b) == (pytest.approx(2000, rel=0.03), pytest.approx(3000, rel=0.03))
    assert diff.work.a == diff.work.b == 1060
    assert judge(diff, Limits(0.05)).code == 1
    assert "time in operators" in text_comparison(diff)
    assert "time in operators" not in text_comparison(compare([drawn([1000] * 9)], [drawn([1500] * 9)]))


def spread_over(factor: float, ran: float) -> Profile:
    """Six operators that all take `factor` as long, of which the threads ran `ran`."""
    lines = "".join(
        f"      operator aten::op{i} | time={round(9e6 * factor)}/90 call_time={round(9e6 * factor)}/90"
        f" operator_running_time={round(9e6 * ran)}/90\n"
        for i in range(6)
    )
    text = "    python train @ /a/train.py:5 | first_line=1\n" + lines
    text += "    python train @ /a/train.py:6 | first_line=1\n      phase optimizer | time=900/90 call_time=900/90\n"
    return build("process train.py | pid=7\n  thread main\n" + text)


def test_a_busy_machine_is_told_from_a_slower_program():
    busy = compare([spread_over(1, 1)], [spread_over(2, 1.05)])
    assert "ran 1.05 times as long" in busy.doubt
    assert judge(busy, Limits(0.05)).code == 3
    slower = compare([spread_over(1, 1)], [spread_over(2, 2)])
    assert slower.doubt == ""
    assert judge(slower, Limits(0.05)).code == 1


def test_exit_codes(tmp_path, capsys):
    """1 fails, 3 is no verdict, and 2 is for what was typed: a baseline that was not downloaded is no verdict."""
    names = {}
    for name, profile in {"a": drawn([1000] * 9), "some": drawn([1200] * 9), "much": drawn([3000] * 9)}.items():
        names[name] = str(tmp_path / f"{name}.leadline")
        write_profile(names[name], profile)
    gate = lambda file, baseline: cli.main(["gate", file, "--against", baseline])  # noqa: E731
    assert gate(names["a"], names["a"]) == 0
    assert gate(names["much"], names["a"]) == 1
    assert gate(names["some"], names["a"]) == 3
    assert gate(names["some"], str(tmp_path / "none.leadline")) == 2
    assert cli.main(["gate", names["a"]]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("name", ["param-linear-2080ti/linear_kineto.json.gz", "hta/nccl_data.json.gz"])
def test_a_trace_and_itself_are_alike(name):
    if not (TRACES / name).exists():
        pytest.skip("the shared traces are not here")
    profile = import_traces([TRACES / name])
    diff = compare([profile], [profile])
    assert (diff.changes, diff.differences, diff.doubt) == ((), (), "")
    for figure in (diff.step, diff.work, diff.gpu):
        assert figure is None or (figure.ratio, figure.verdict) == (1.0, "no clear change")
    assert judge(diff, Limits(0.0, 0.0)).code == 0
    assert all(a == b for rows in diff.groups.values() for _, a, b in rows)


def test_what_is_more_than_noise_stands_first():
    """One operator of twice the time among others that differ by chance: it alone is called slower."""
    before, after = (
        [drawn([ns] * 40, relu=one) for one in relus] for ns, relus in ((1000, (50, 60, 41)), (2000, (59, 42, 52)))
    )
    slower, _, noise = text_comparison(compare(before, after)).partition("no clear change: the largest of 1 path")
    assert "aten::mm" in slower.split("slower paths")[1] and "aten::relu" not in slower
    assert "aten::relu" in noise
