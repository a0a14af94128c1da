"""Modules that all compute all rows, though the weights of their results are mostly zeros."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called

from leadline.analysis.analyze import analyze

ROUTE = "  python Router.forward @ /home/ada/net.py"


def routed(*, experts: int = 6, zeros: str = ',"zeros":[0]', ms: int = 60, kind: str = "Expert"):
    """A router that calls its experts and multiplies their results with weights."""
    lines = ["python main @ /home/ada/train.py:43", f"{ROUTE}:22"]
    for number in range(experts):
        lines += [f"    module net.experts.{number} [{kind}]", "      " + called("aten::addmm", 10, ms // experts)]
    product = '{"shapes":[[512,1],[512,128]]' + zeros + "}"
    lines += [f"{ROUTE}:23", "    " + called("aten::mul", 60, 1) + f" detail={product}"]
    return [one for one in analyze(training(*lines), ["redundant_work"]) if "multiplied by zero" in one.title]


def test_experts_that_all_compute_all_rows_are_named_with_the_product():
    (one,) = routed()
    assert one.title.startswith("6 modules (Expert) compute all rows")
    assert [line.line for line in one.lines] == [22, 23]
    assert (one.severity.value, "index_add_" in one.remedy) == ("warning", True)
    assert 0 < one.gain.expected_ns < 0.7 * one.weight * one.gain.of_ns


@pytest.mark.parametrize("change", [{"zeros": ""}, {"experts": 1}, {"ms": 1}], ids=str)
def test_weights_without_zeros_one_module_and_little_work_are_left_alone(change):
    assert routed(**change) == []
