"""Rules that serve the account: weights computed again, types without a fast path, random numbers, paths that grow."""

from __future__ import annotations

from typing import Any

from tests.analysis.test_findings import MS, named, names, training

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Severity
from leadline.profiles.profile import Profile


def operator(indent: str, name: str, ms: float, calls: int) -> str:
    return f"{indent}operator {name} | time={int(ms * 10 * MS)}/{calls} call_time={int(ms * 10 * MS)}/{calls}"


def normed(each: int) -> Profile:
    """Ten steps; a parametrised module computes its weight `each` times a step, 3 ms in all."""
    return training(
        "python main @ /home/ada/train.py:43",
        "  module model.cell [NormedCell]",
        "    python Cell.forward @ /home/ada/train.py:25",
        "      module model.cell.gate.parametrizations.weight [ParametrizationList]",
        operator("        ", "aten::_weight_norm_interface", 3, 10 * each),
    )


def test_weights_that_are_computed_once_a_step_are_left_alone_and_sixty_times_are_not():
    assert "weights_again" not in names(analyze(normed(1)))
    one = named(analyze(normed(60)), "weights_again")
    assert one.lines[0].line == 25
    assert "60 times a step" in one.title
    assert "parametrize.cached" in one.remedy
    assert 0 < one.gain.expected_ns <= 3.5 * MS


def half(types: bool, name: str = "aten::_slow_conv2d_forward") -> Profile:
    kind = ' {"types": ["c10::Half", "c10::Half"]}' if types else ""
    profile = training("python main @ /home/ada/train.py:43", operator(f"  {kind}".rstrip() + "  ", name, 6, 10))
    return profile


def test_a_convolution_that_fell_back_in_half_precision_is_told_to_use_float32_not_less():
    profile = half(types=False)
    assert "slow_type" not in names(analyze(profile))  # nobody says of what type it is
    profile.meta["available"] = {"torch": {"ok": True, "habits": {"types": {"float16": 1000}}}}
    one = named(analyze(profile), "slow_type")
    assert "float16" in one.title
    assert "float32" in one.remedy
    assert "lower" not in one.remedy
    profile.meta["available"] = {"torch": {"ok": True, "habits": {"types": {"float32": 1000}}}}
    assert "slow_type" not in names(analyze(profile))


def test_random_numbers_of_attention_name_its_unfused_path():
    profile = training(
        "python main @ /home/ada/train.py:43",
        operator("  ", "aten::scaled_dot_product_attention", 0.1, 10),
        operator("    ", "aten::bernoulli_", 4, 10),
    )
    one = named(analyze(profile), "random_numbers")
    assert one.lines[0].line == 43
    assert "dropout=0" in one.remedy
    assert any("unfused" in text for text in one.evidence)
    assert "random_numbers" not in names(analyze(training()))


def grown(late_ns: int, calls: tuple[int, int] = (100, 1000)) -> Profile:
    """A path of the optimizer beside four that stay as they are."""
    profile = training()
    steady: list[dict[str, Any]] = [
        {"file": "/home/ada/train.py", "line": 50 + number, "function": "main", "what": f"aten::op{number}"}
        | {"steps": [100, 1000], "calls": [100, 1000], "ns": [100 * MS, 1000 * MS]}
        for number in range(4)
    ]
    changed = {"file": "/home/ada/train.py", "line": 44, "function": "main", "what": "aten::sqrt"}
    changed |= {"steps": [100, 1000], "calls": list(calls), "ns": [calls[0] * MS, calls[1] * late_ns]}
    profile.meta["growth"] = [changed, *steady]
    return profile


def test_an_operator_that_gets_slower_call_by_call_is_named_with_denormals():
    one = named(analyze(grown(10 * MS)), "grows")
    assert (one.severity, one.lines[0].line) == (Severity.WARNING, 44)
    assert "set_flush_denormal" in one.remedy
    assert "10 times" in one.title


def test_a_path_that_is_called_more_often_each_step_is_named():
    one = named(analyze(grown(MS, calls=(100, 5000))), "grows")
    assert "called 5 times as often" in one.title


def test_a_machine_that_others_use_is_no_growth():
    profile = grown(3 * MS)
    for row in profile.meta["growth"]:
        row["ns"] = [row["ns"][0], row["calls"][1] * 3 * MS]
    assert "grows" not in names(analyze(profile))
