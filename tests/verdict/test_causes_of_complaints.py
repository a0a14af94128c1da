"""Causes that the second examination found unnamed: where a mode is set, pairs made on two lines, JAX without steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS
from tests.verdict.drawn import eager_jax

from leadline.analysis.analyze import analyze
from leadline.analysis.calls_in_source import lines_that_call
from leadline.analysis.case import Case
from leadline.profiles.build import build

SOURCE = """\
import torch
torch.autograd.set_detect_anomaly(True)
torch.autograd.set_detect_anomaly(False)
model = Model().double()
x = y.to(dtype=torch.float64)
x = y.to(dtype=torch.float32)
loss.backward(retain_graph=True)
loss.backward(retain_graph=False)
"""


@pytest.mark.parametrize(
    ("names", "arguments", "keyword", "lines"),
    [
        (("set_detect_anomaly",), (), "", [2]),
        (("double",), (), "", [4]),
        (("to",), ("float64",), "", [5]),
        ((), (), "retain_graph", [7]),
        (("absent",), (), "", []),
    ],
)
def test_calls_are_found_in_the_source_as_far_as_they_switch_something_on(
    tmp_path: Path, names: tuple[str, ...], arguments: tuple[str, ...], keyword: str, lines: list[int]
) -> None:
    source = tmp_path / "train.py"
    source.write_text(SOURCE)
    case = Case(build(f"process train.py | pid=5\n  thread main | tid=5\n    python main @ {source}:7"))
    found = lines_that_call(case, names, arguments=arguments, keyword=keyword)
    assert [one.line for one in found] == lines


def pairs(large: int, also: int) -> str:
    """Distances: a difference on one line, its square and sum on the next; `also`: bytes of another operator."""
    rows = [
        (18, "aten::sub", large),
        (19, "aten::pow", large),
        (19, "aten::sum", large // 96),
        (30, "aten::addmm", also),
    ]
    lines = ["process train.py | pid=5", "  thread main | tid=5", f"    phase step | call_time={90 * MS}/9"]
    for line, name, size in rows:
        function = "sq_dist" if line < 30 else "main"
        lines += [
            f"    python {function} @ /home/ada/train.py:{line}",
            f"      operator {name} | time={20 * MS}/10 call_time={20 * MS}/10 alloc_bytes={size * 10}/10",
        ]
    lines += ["    python main @ /home/ada/train.py:44", f"      phase optimizer | time={MS}/10 call_time={MS}/10"]
    return "\n".join(lines)


def test_pairs_that_one_line_makes_and_the_next_reduces_are_named() -> None:
    found = analyze(build(pairs(96 << 18, 1 << 16)))
    assert any("of pairs are written" in one.title and one.lines[0].line in (18, 19) for one in found)


def test_a_large_input_that_is_reduced_is_no_pairs() -> None:
    found = analyze(build(pairs(96 << 18, 96 << 18)))
    assert not any("pairs" in one.title for one in found)


def test_jax_op_by_op_needs_no_steps() -> None:
    profile = eager_jax(4000)
    [one] = [one for one in analyze(profile) if one.rule == "op_by_op"]
    assert one.lines[0].line == 7
    assert "6,000 operations of JAX run one by one" in one.title
    assert any("one by one" in fact for fact in profile.verdict.because)


def test_some_operations_of_set_up_are_not_op_by_op() -> None:
    assert not [one for one in analyze(eager_jax(100)) if one.rule == "op_by_op"]


def compiled_anew(times: int) -> str:
    """JAX: one line calls a program that is compiled anew for each of `times` batches, 100 ms each."""
    lines = [
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=9000000000",
        f"    python main @ /home/ada/train.py:28 | cpu_sample={times * MS}/{times}",
        f'      phase compile | call_time={times * 100 * MS}/{times} detail={{"function":"step"}}',
        f"        phase compile: XLA | time={times * 100 * MS}/{times} call_time={times * 100 * MS}/{times}",
    ]
    lines += ["    python main @ /home/ada/train.py:9", '      phase compile | detail={"function":"other"}']
    lines += ["    python main @ /home/ada/train.py:28"]
    lines += [f'      operator jit(step) | time={MS}/1 call_time={MS}/1 detail={{"run":{one}}}' for one in range(times)]
    return "\n".join(lines)


def test_a_program_that_is_compiled_for_each_batch_has_steps_which_hold_the_compiling() -> None:
    profile = build(compiled_anew(40))
    verdict = profile.verdict
    assert verdict.account is not None
    assert (verdict.kind, verdict.account.steps) == ("compile", 40)
    assert verdict.account.wall_ns == pytest.approx(100 * MS, rel=0.05)
    assert any("compiled 40 times" in fact for fact in verdict.because)


def test_stages_of_a_compiler_are_compiling_where_nothing_repeats() -> None:
    profile = build(compiled_anew(1))
    assert profile.verdict.account is not None
    assert profile.verdict.account.ns("compile") >= 100 * MS


@pytest.mark.parametrize(("kind", "said"), [("Adam", 1), ("LBFGS", 0)])
def test_an_optimizer_whose_operators_are_its_method_is_not_told_to_fuse_them(kind: str, said: int) -> None:
    lines = [
        "process train.py | pid=5",
        "  thread main | tid=5",
        f"    phase step | call_time={90 * MS}/9",
        "    python main @ /home/ada/train.py:43",
        f"      operator aten::mm | time={40 * MS}/10 call_time={40 * MS}/10",
        "    python main @ /home/ada/train.py:44",
        f'      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10 detail={{"optimizer":"{kind}"}}',
        f"        operator aten::dot | time={40 * MS}/1000 call_time={40 * MS}/1000",
    ]
    found = analyze(build("\n".join(lines)))
    assert sum(one.rule == "optimizer_loop" for one in found) == said
