"""Rules that serve the account: weights computed again, types without a fast path, random numbers, paths that grow."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS, named, names, training
from tests.verdict.drawn import drawing, grown, normed, operator, typed

from leadline._package import products_of_halves
from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Severity


def test_weights_that_are_computed_once_a_step_are_left_alone_and_sixty_times_are_not():
    assert "weights_again" not in names(analyze(normed(1)))
    one = named(analyze(normed(60)), "weights_again")
    assert one.lines[0].line == 25
    assert "60 times a step" in one.title
    assert "parametrize.cached" in one.remedy
    assert 0 < one.gain.expected_ns <= 3.5 * MS


def test_a_convolution_that_fell_back_in_half_precision_is_told_to_use_float32_not_less():
    one = named(analyze(typed("float16")), "slow_type")
    assert "float16" in one.title
    assert "float32" in one.remedy
    assert "lower" not in one.remedy
    assert "slow_type" not in names(analyze(typed("float32")))
    untold = typed("float16")
    del untold.meta["available"]
    assert "slow_type" not in names(analyze(untold))  # nobody says of what type it is


def test_a_model_of_double_precision_has_one_remedy_and_none_by_autocast() -> None:
    """Autocast leaves tensors of float64 as they are."""
    profile = typed("float64")
    one = named(analyze(profile), "slow_type")
    assert "autocast" not in one.measured_by and "autocast" not in one.fix
    profile = typed("float64")
    profile.meta["available"]["torch"]["habits"]["updated"] = {"parameters": 1000, "bytes": 8000, "double": 1000}
    assert "slow_type" not in names(analyze(profile))


@pytest.mark.parametrize(("host", "told"), [({"products": []}, True), ({"products": ["bfloat16"]}, False), ({}, False)])
def test_products_of_bfloat16_are_told_where_the_processor_has_none(host, told: bool, tmp_path) -> None:
    file = tmp_path / "train.py"
    file.write_text("with torch.autocast('cpu', dtype=torch.bfloat16):\n    loss = model(x)\n")
    product = f"operator aten::mm | time={400 * MS}/10 call_time={400 * MS}/10"
    types = ' detail={"shapes":[[200,192],[192,768]],"types":["c10::BFloat16","c10::BFloat16"]}'
    profile = training(f"python <module> @ {file}:2", "  " + product + types)
    profile.meta["host"] = host
    found = [one for one in analyze(profile) if one.rule == "slow_type"]
    assert [one.lines[0].line for one in found] == ([1] if told else [])
    if told:
        assert found[0].remedy == "Compute in float32 on this processor: leave out torch.autocast."
        assert found[0].fix == "" or "autocast" not in found[0].fix


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16 amx_fp16\n", ["bfloat16", "float16"]),
        ("processor\t: 0\nflags\t\t: fpu avx2\n", []),
        ("processor\t: 0\nFeatures\t: fp asimd asimdhp bf16\n", ["bfloat16", "float16"]),
        ("processor\t: 0\n", None),
        (None, None),
    ],
)
def test_the_kernel_tells_what_the_processor_multiplies(text, products, tmp_path) -> None:
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    assert products_of_halves(str(file)) == products


def test_random_numbers_of_attention_name_its_unfused_path():
    one = named(analyze(drawing(4)), "random_numbers")
    assert one.lines[0].line == 43
    assert "dropout=0" in one.remedy
    assert any("unfused" in text for text in one.evidence)
    assert "random_numbers" not in names(analyze(training()))


def test_an_operator_that_gets_slower_call_by_call_is_named_with_denormals():
    one = named(analyze(grown(10 * MS)), "grows")
    assert (one.severity, one.lines[0].line) == (Severity.WARNING, 44)
    assert "set_flush_denormal" in one.remedy
    assert "10 times" in one.title


def test_a_call_whose_input_is_not_known_to_grow_is_not_told_what_to_keep() -> None:
    profile = grown(10 * MS)
    profile.meta["growth"][0]["what"] = "aten::sort"
    assert named(analyze(profile), "grows").remedy.startswith("Find what its time depends on")


def test_no_more_is_gained_than_the_path_took():
    """A call of 10 ms late every fifth step: 2 ms a step, of which 1.8 were not there early, whatever the others took."""
    profile = grown(10 * MS)
    for row in profile.meta["growth"]:
        row["steps"] = [500, 5000]
    one = named(analyze(profile), "grows")
    assert one.gain.high_ns == pytest.approx(1.8 * MS, rel=0.01)


def test_a_path_that_is_called_more_often_each_step_is_named():
    one = named(analyze(grown(MS, calls=(100, 5000))), "grows")
    assert "called 5 times as often" in one.title


def test_a_machine_that_others_use_is_no_growth():
    profile = grown(3 * MS)
    for row in profile.meta["growth"]:
        row["ns"] = [row["ns"][0], row["calls"][1] * 3 * MS]
    assert "grows" not in names(analyze(profile))


def _doubled(other: str = "double", file: str = "/home/ada/train.py", line: int = 43, name: str = "aten::add"):
    """A softmax of 5 ms in the type that the operator before it has. What `slow_type` says."""
    shapes = f'detail={{"shapes":[[64,64],[64,64],[]],"types":["float","{other}","Int"]}}'
    behind = f'detail={{"shapes":[[64,64],[]],"types":["{other}","Int"]}}'
    profile = training(
        f"python main @ {file}:{line}",
        f"  operator {name} | time={20 * MS}/10 call_time={20 * MS}/10 {shapes}",
        "python main @ /home/ada/train.py:44",
        f"  operator aten::_softmax | time={50 * MS}/10 call_time={50 * MS}/10 {behind}",
    )
    return [one for one in analyze(profile).findings if one.rule == "slow_type"], profile


@pytest.mark.parametrize(("other", "line"), [("double", 43), ("float", 0)])
def test_a_float64_tensor_that_meets_float32_is_named_where_they_meet(other: str, line: int) -> None:
    found, _ = _doubled(other)
    assert [one.lines[0].line for one in found if "Float32 meets" in one.title] == ([line] if line else [])


@pytest.mark.parametrize("name", ["aten::copy_", "aten::_to_copy", "aten::add_"])
def test_what_turns_float64_into_float32_is_no_place_where_they_meet(name: str) -> None:
    found, _ = _doubled(name=name)
    assert found == []


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("t = torch.arange(n, dtype=torch.float64)", True),
        ("t = torch.arange(n).double()", True),
        ("t = np.arange(n, dtype='float64')", True),
        ("t = torch.from_numpy(np.arange(n) / n)", False),
    ],
)
def test_float64_that_the_function_asks_for_is_no_accident(tmp_path, asked: str, meant: bool) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"def other(n):\n    return n.double()\n\ndef main(x, n):\n    {asked}\n    return x + t\n")
    (one,), profile = _doubled(file=str(file), line=6)
    assert ("as this function asks" in one.title, "Float32 meets" in one.title) == (meant, not meant)
    assert (one.severity is Severity.INFO, one.gain.high_ns == 0) == (meant, meant)
    assert any(fix.rule == "slow_type" for fix in profile.verdict.fixes) is not meant


def test_growth_that_is_known_of_the_place_is_not_said_again_with_another_figure() -> None:
    """What the place took is in ms; the finding leaves out by how much everything became slower."""
    profile = training("python main @ /home/ada/train.py:44", "  " + operator("", "aten::sort", 20, 10))
    changed = {"file": "/home/ada/train.py", "line": 44, "function": "main", "what": "aten::sort"}
    changed |= {"steps": [100] * 3, "calls": [100] * 3, "ns": [100 * MS, 300 * MS, 900 * MS]}
    steady = [
        {**changed, "line": 50 + number, "what": f"aten::op{number}", "ns": [100 * MS, 110 * MS, 120 * MS]}
        for number in range(4)
    ]
    profile.meta["growth"] = [changed, *steady]
    assert named(analyze(profile), "grows").lines[0].line == 44
    because = profile.verdict.because
    assert any("1.00 ms a call early in the run and 9.00 ms late" in one for one in because)
    assert not any("times as long late" in one for one in because)
