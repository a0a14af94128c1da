"""Modules that all compute all rows, though the weights of their results are mostly zeros."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called

from leadline.analysis.analyze import analyze


def routed(*, experts: int = 6, zeros: str = ',"zeros":[0]', ms: int = 60, inner: str = ""):
    """A router that calls its experts and multiplies their results with weights."""
    calls = f"  python Router.forward{inner} @ /home/ada/net.py:22"
    lines = ["python main @ /home/ada/train.py:43", calls]
    for number in range(experts):
        lines += [f"    module net.experts.{number} [Expert]", "      " + called("aten::addmm", 10, ms // experts)]
    product = '{"shapes":[[512,1],[512,128]]' + zeros + "}"
    lines += [
        "  python Router.forward @ /home/ada/net.py:23",
        "    " + called("aten::mul", 60, 1) + f" detail={product}",
    ]
    return [one for one in analyze(training(*lines), ["redundant_work"]) if "multiplied by zero" in one.title]


@pytest.mark.parametrize("inner", ["", ".<locals>.<listcomp>"])
def test_experts_that_all_compute_all_rows_are_named_with_the_product(inner):
    (one,) = routed(inner=inner)
    assert one.title.startswith("6 modules (Expert) compute all rows")
    assert [line.line for line in one.lines] == [22, 23]
    assert (one.severity.value, "index_add_" in one.remedy) == ("warning", True)
    assert 0 < one.gain.expected_ns < 0.7 * one.weight * one.gain.of_ns


@pytest.mark.parametrize("change", [{"zeros": ""}, {"experts": 1}, {"ms": 1}], ids=str)
def test_weights_without_zeros_one_module_and_little_work_are_left_alone(change):
    assert routed(**change) == []


def test_layers_whose_padding_is_masked_further_out_discard_nothing():
    lines = ["python main @ /home/ada/train.py:43", "  module net [Classifier]"]
    lines += ["    python Classifier.forward @ /home/ada/net.py:22", "      module net.encoder [Encoder]"]
    for number in range(3):
        lines += [f"        module net.encoder.{number} [Layer]", "          " + called("aten::addmm", 10, 20)]
    product = '{"shapes":[[32,128,192],[32,128,1]],"zeros":[1]}'
    lines += [
        "    python Classifier.forward @ /home/ada/net.py:23",
        "      " + called("aten::mul", 10, 1) + f" detail={product}",
    ]
    assert not [one for one in analyze(training(*lines), ["redundant_work"]) if "multiplied by zero" in one.title]
