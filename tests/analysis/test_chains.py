"""A chain of elementwise operators is one computation on large tensors, and the advice names what it computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_findings import MS, training

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding

GELU = (
    (43, "aten::pow aten::mul aten::add"),
    (44, "aten::tanh aten::add aten::mul"),
)
"""Lines of a function, with the operators that each calls."""


def computed(
    *lines: tuple[int, str],
    elements: int = 1 << 18,
    between: tuple[str, ...] = (),
    file: str = "/home/ada/train.py",
    calls: int = 10,
) -> list[Finding]:
    """Each operator takes 1 ms a step, in so many calls of ten steps."""
    detail = f'detail={{"shapes":[[{elements}],[]]}}' if elements else ""
    made = [
        text
        for line, operators in lines
        for text in (
            f"python main @ {file}:{line}",
            *(
                f"  operator {name} | time={10 * MS}/{calls} call_time={10 * MS}/{calls} {detail}"
                for name in operators.split()
            ),
        )
    ]
    return list(analyze(training(*made, *between), ["kernel_fusion"]))


def test_adjacent_lines_are_one_chain_that_is_named_with_its_lines_and_length() -> None:
    (one,) = computed(*GELU)
    assert one.title.startswith("A chain of 6 elementwise operators at lines 43 to 44 of main takes ")
    assert [line.line for line in one.lines] == [43, 44]
    assert "on 262,144 elements" in one.evidence[0]
    assert one.gain.high_ns <= 6 * MS


def test_an_operator_that_a_line_calls_twice_counts_twice() -> None:
    (one,) = computed((52, "aten::mul aten::mul"), (53, GELU[0][1]), (54, GELU[1][1]))
    assert "A chain of 8 elementwise operators at lines 52 to 54" in one.title


def test_lines_that_are_scattered_between_other_work_are_none() -> None:
    assert computed(GELU[0], (64, GELU[1][1])) == []
    product = f"  operator aten::mm | time={50 * MS}/10 call_time={50 * MS}/10"
    apart = (53, GELU[0][1]), (55, GELU[1][1])
    assert len(computed(*apart)) == 1
    assert computed(*apart, between=("python main @ /home/ada/train.py:54", product)) == []


def test_what_a_module_of_the_framework_computes_on_a_line_is_not_the_functions_own() -> None:
    tanh = f"operator aten::tanh | time={100 * MS}/10 call_time={100 * MS}/10"
    module = ("python main @ /home/ada/train.py:44", "  module actor.1 [Tanh]", f"    {tanh}")
    assert computed((43, "aten::sub aten::exp aten::mul aten::add"), between=module) == []


def test_lines_in_and_behind_a_loop_are_no_chain(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("def main(x):\n    for t in range(9):\n        x = x ** 2 * x + x\n    x = x.tanh() + x * x\n")
    lines = (3, GELU[0][1]), (4, GELU[1][1])
    assert computed(*lines, file=str(file)) == []
    file.write_text("def main(x):\n    if True:\n        x = x ** 2 * x + x\n    x = x.tanh() + x * x\n")
    assert len(computed(*lines, file=str(file))) == 1


@pytest.mark.parametrize(("elements", "calls"), [(1024, 10), (0, 10_000)])
def test_many_calls_on_small_tensors_are_no_matter_of_memory(elements: int, calls: int) -> None:
    """By their shapes, and where these are not known by how short the calls are."""
    assert computed(*GELU, elements=elements, calls=calls) == []
    assert len(computed(*GELU, elements=elements and 1 << 20)) == 1


@pytest.mark.parametrize(
    ("operators", "named"),
    [
        ("mul pow add tanh add mul", "F.gelu"),
        ("mul mul mul mul mul mul add tanh add", "F.gelu"),
        ("mul erf add mul div", "F.gelu"),
        ("mean sub pow mean add sqrt div mul", "F.layer_norm"),
        ("mean var sub add rsqrt mul mul add", "F.layer_norm"),
        ("pow mean add rsqrt mul mul", "F.rms_norm"),
        ("sub exp sum log sub gather neg mul", "F.cross_entropy"),
        ("sub exp mul clamp minimum neg", ""),
        ("sigmoid mul tanh add mul sigmoid", ""),
        ("tanh mul sin add sub", ""),
        ("sub exp sum log mul add", ""),
    ],
)
def test_an_operator_is_advised_only_where_the_chain_computes_what_it_does(operators: str, named: str) -> None:
    (one,) = computed((43, " ".join(f"aten::{name}" for name in operators.split())))
    assert one.remedy.startswith(f"Use {named}," if named else "Put torch.compile around the function")
    assert "torch.compile" in one.remedy
    assert [name for name in ("F.gelu", "F.layer_norm", "F.rms_norm", "F.cross_entropy") if name in one.remedy] == (
        [named] if named else []
    )
