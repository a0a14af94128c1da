"""Products of three matrices in the dear order, told from what a softmax, a mask or the sizes rule out."""

from __future__ import annotations

import json

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called

from leadline.analysis.analyze import analyze

AT = "  python LinearAttention.forward @ /home/ada/net.py"
N, D = 1024, 16


def product(line: int, name: str, *shapes: list[int], ms: float = 30) -> list[str]:
    detail = json.dumps({"shapes": list(shapes)}, separators=(",", ":"))
    return [f"{AT}:{line}", "    " + called(name, 10, ms) + f" detail={detail}"]


def found(*between: str, n: int = N, name: str = "aten::bmm", batch: tuple[int, ...] = (32,)):
    lines = [
        "python main @ /home/ada/train.py:43",
        *product(20, name, [*batch, n, D], [*batch, D, n]),
        *between,
        *product(21, name, [*batch, n, n], [*batch, n, D]),
        *product(21, "aten::sum", [*batch, n, n], [], ms=1),
    ]
    return [one for one in analyze(training(*lines), ["redundant_work"]) if "order of two products" in one.title]


@pytest.mark.parametrize(("name", "batch"), [("aten::bmm", (32,)), ("aten::mm", ())])
def test_linear_attention_that_makes_all_pairs_is_named_at_both_products(name, batch):
    (one,) = found(name=name, batch=batch)
    assert "[1024, 1024]" in one.title
    assert [line.line for line in one.lines] == [20, 21]
    assert "a 64th of the arithmetic" in one.evidence[0]
    assert 0 < one.gain.expected_ns <= 0.8 * one.weight * one.gain.of_ns


def test_a_scale_between_is_linear():
    assert found(*product(20, "aten::mul", [32, N, N], [], ms=1))


@pytest.mark.parametrize(
    "between",
    [
        product(20, "aten::_softmax", [32, N, N], [], [], ms=1),
        product(20, "aten::mul", [32, N, N], [N, N], ms=1),
        product(20, "aten::masked_fill", [32, N, N], [N, N], [], ms=1),
        product(20, "aten::relu", [4, 8 * N, N], ms=1),
    ],
    ids=["softmax", "mask", "fill", "as many elements in another shape"],
)
def test_a_softmax_or_a_mask_between_rules_another_order_out(between):
    assert found(*between) == []


def test_small_matrices_have_no_better_order():
    assert found(n=D) == []
