"""Constituents of a step that no name of an operator tells: padding, weights that are built anew, results that are kept."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import training

from leadline.analysis.analyze import analyze
from leadline.analysis.case import Case
from leadline.analysis.rules.grows import Grows
from leadline.analysis.rules.unrolled_loop import nests

MS = 1_000_000
MIB = 1 << 20
AT = "python main @ /home/ada/train.py:43"


def called(name: str, calls: int, ms: float, more: str = "") -> str:
    ns = int(ms * MS)
    return f"operator {name} | time={ns}/{calls} call_time={ns}/{calls} {more}"


def padded(part: float, common: float, *more: str, **habits: object):
    profile = training(AT, "  module net [Bert]", "    " + called("aten::embedding", 10, 60), *more)
    sums = {"batches": 10, "all": int(part * 10e6), "common": int(common * 10e6)}
    profile.meta["available"] = {"torch": {"ok": True, "padding": sums, "habits": habits}}
    return analyze(profile, ["padding"])


def test_a_batch_that_is_mostly_padding_is_named_with_what_its_longest_row_needs():
    (one,) = padded(0.8, 0.6)
    assert one.title == "80 % of each batch is padding, and its longest row fills 40 %"
    assert one.lines[0].line == 43
    assert one.severity.value == "warning"
    assert one.gain.expected_ns == int(0.54 * 6 * MS)


def test_batches_that_are_padded_to_their_longest_row_are_to_be_sorted_only():
    (one,) = padded(0.4, 0.0)
    assert one.title == "40 % of each batch is padding, and its longest row fills all of it"
    assert one.severity.value == "info" and "longest" not in one.remedy


def test_little_padding_and_packed_rows_are_left_alone():
    assert not list(padded(0.2, 0.1))
    assert not list(padded(0.8, 0.6, "    " + called("aten::_pack_padded_sequence", 10, 1)))


def test_the_function_that_joins_samples_is_named_at_the_line_that_fills_up(tmp_path):
    file = tmp_path / "data.py"
    file.write_text("import torch\ndef join(rows):\n    n = len(rows)\n    ids = torch.zeros(n, 256)\n    return ids\n")
    made = {"join": {"name": "join", "file": str(file), "line": 2}, "join_ns": 1, "batches": 10}
    (one,) = padded(0.8, 0.6, batches=[made])
    assert [line.line for line in one.lines] == [4, 43]


def built(made: str, used: str):
    profile = training(
        AT,
        "  module net.fc [LoRALinear]",
        "    python forward @ /home/ada/net.py:24",
        f'      operator aten::matmul | time={20 * MS}/10 call_time={20 * MS}/10 detail={{"shapes":{made}}}',
        "    python forward @ /home/ada/net.py:25",
        f'      operator aten::linear | time={20 * MS}/10 call_time={20 * MS}/10 detail={{"shapes":{used}}}',
    )
    return list(analyze(profile, ["weights_again"]))


def test_a_weight_that_is_built_at_each_call_is_named_where_it_is_built():
    (one,) = built("[[512,8],[8,256]]", "[[8,16,256],[512,256],[]]")
    assert "builds its weight from parameters at each call" in one.title
    assert (one.lines[0].short, one.lines[0].line) == ("net.py", 24)
    assert "x @ A.T @ B.T" in one.remedy


def test_what_has_another_shape_or_may_be_an_activation_is_no_weight():
    assert built("[[128,8],[8,256]]", "[[8,16,256],[512,256],[]]") == []
    assert built("[[512,8],[8,256]]", "[[512,256],[512,256],[]]") == []


def kept(alive: int, calls: int = 40):
    sizes = f"alloc_bytes={calls * 10 * MIB}/{calls} peak_live_bytes={alive * 10 * MIB}/1"
    return list(analyze(training(AT, "  " + called("aten::linear", calls, 5, sizes)), ["kept_results"]))


def test_results_that_are_all_alive_at_the_peak_are_kept_by_somebody():
    (one,) = kept(39)
    assert "are all kept, 390 MiB" in one.title
    assert one.lines[0].line == 43
    assert one.severity.value == "warning"


def test_results_of_one_step_or_of_a_window_are_not():
    assert kept(4) == []
    assert kept(16) == []


def broadcast(*shapes: str, first: str = "sub", product: str = ""):
    named = [*zip((first, "mul"), shapes, strict=True), *([("mm", product)] if product else [])]
    lines = [
        f'  operator aten::{name} | time={20 * MS}/10 call_time={20 * MS}/10 detail={{"shapes":{shape}}}'
        for name, shape in named
    ]
    found = analyze(training(AT, *lines), ["redundant_work"])
    return [one for one in found if "are broadcast to" in one.title]


def test_a_row_and_a_column_of_one_length_that_meet_are_an_accident():
    (one,) = broadcast("[[2048],[2048,1],[]]", "[[2048,2048],[]]")
    assert one.title.startswith("[2048] and [2048, 1] are broadcast to [2048, 2048], 2,048 times as large, 29 %")
    assert (one.severity.value, one.lines[0].line) == ("warning", 43)
    assert "squeeze" in one.remedy


def test_a_matrix_for_each_row_is_worth_knowing_and_what_is_as_large_as_an_input_is_not():
    (one,) = broadcast("[[8,96,96,1],[8,96,1,96]]", "[[8,96,96,96],[]]")
    assert one.severity.value == "info"
    assert broadcast("[[8,1,96,96],[8,4,96,96]]", "[[8,4,96,96],[]]") == []
    assert broadcast("[[2048,64],[64,4096]]", "[[2048,4096],[]]") == []
    assert broadcast("[[2048,1],[1,4096]]", "[[2048,4096],[]]", first="mm") == []


def test_a_mask_for_the_logits_of_a_product_is_no_tensor_of_all_pairs_that_could_be_avoided():
    shapes = "[[2048,1],[1,4096]]", "[[2048,4096],[]]"
    assert len(broadcast(*shapes, first="eq")) == 1
    assert broadcast(*shapes, first="eq", product="[[2048,64],[64,4096]]") == []


def test_of_loops_that_are_unrolled_inside_of_one_another_the_outermost_comes_first(tmp_path):
    file = tmp_path / "ode.py"
    text = "def field(y):\n for w in W:\n  y = w * y\n return y\ndef solve(y):\n for n in range(20):\n  y = field(y)\n"
    file.write_text(text)
    group = {"turns": 120, "operations": 400, "primitive": "mul"}
    group["frames"] = [[str(file), 3, "field"], [str(file), 7, "solve"]]
    case = Case(training(AT))
    assert list(nests(case, {"groups": [group]}).items()) == [
        (((str(file), 6, "solve"), (str(file), 2, "field")), (120, 400))
    ]


def samples(tmp_path, body: str, passes: int = 4, loading_ms: int = 6):
    file = tmp_path / "data.py"
    file.write_text(f"class Reviews:\n  def __getitem__(self, i):\n    {body}\n")
    profile = training(loading_ms=loading_ms)
    made = {"items": {"name": "Reviews.__getitem__", "file": str(file), "line": 2}, "join_ns": MS, "batches": 40}
    profile.meta["available"] = {"torch": {"ok": True, "habits": {"batches": [{**made, "passes": passes}]}}}
    return [one for one in analyze(profile, ["data_loading"]) if "same samples again" in one.title]


def test_samples_that_each_pass_makes_anew_are_named_where_they_are_made(tmp_path):
    (one,) = samples(tmp_path, "return self.words.encode(self.texts[i])")
    assert one.title.startswith(
        "Reviews.__getitem__ makes the same samples again in each of 4 passes over the data, 59 %"
    )
    assert one.lines[0].line == 2


def test_samples_of_chance_of_one_pass_or_that_nobody_waits_for_are_left_alone(tmp_path):
    assert samples(tmp_path, "return self.augment(self.images[i])") == []
    helper = "return self.weak(self.images[i])\n  def weak(self, image):\n    return image * torch.rand(())"
    assert samples(tmp_path, helper) == []
    assert samples(tmp_path, helper.replace("torch.rand(())", "0.5"))
    assert samples(tmp_path, "return self.texts[i]", passes=1) == []
    assert samples(tmp_path, "return self.texts[i]", passes=20) == []
    assert samples(tmp_path, "return self.texts[i]", loading_ms=1) == []


def growing(*calls: int):
    profile = training()
    steady = {"file": "/home/ada/train.py", "line": 42, "function": "main", "what": "aten::linear"}
    steady |= {"steps": [10, 20, 40], "calls": [10, 20, 40], "ns": [MS, 2 * MS, 4 * MS]}
    hooked = {"file": "/home/ada/train.py", "line": 9, "function": "save", "what": "aten::std"}
    hooked |= {"steps": [10, 20, 40], "calls": list(calls), "ns": [MS * number // 100 for number in calls]}
    profile.meta["growth"] = [steady, hooked]
    return Grows().more_calls(Case(profile), profile.meta["growth"], Grows().values({}))


def test_a_function_that_is_called_more_often_in_each_part_of_a_run_is_named():
    (one,) = growing(30, 300, 1600)
    assert one.title == "save calls 13 times as many operators a step late in the run as early"
    assert (one.lines[0].line, one.severity.value) == (9, "warning")
    assert "hooks" in one.remedy


def test_a_function_that_is_called_more_often_for_a_while_is_not():
    assert growing(30, 600, 800) == []
    assert growing(100, 200, 400) == []


@pytest.mark.parametrize(("name", "said"), [("aten::linalg_svd", True), ("aten::_weight_norm_interface", False)])
def test_a_decomposition_that_takes_the_step_is_told_what_needs_none(name, said):
    profile = training(AT, "  " + called(name, 10, 60), "    " + called(name + "_inner", 10, 40))
    assert [True for one in analyze(profile, ["hotspot"]) if "power iteration" in one.remedy] == [True] * said


def test_a_norm_that_is_a_decomposition_is_told_so():
    parts = ["    " + called("aten::_linalg_svd", 10, 50), "    " + called("aten::amax", 10, 5)]
    profile = training(AT, "  " + called("aten::linalg_matrix_norm", 10, 10), *parts)
    assert any("power iteration" in one.remedy for one in analyze(profile, ["hotspot"]))


def test_shares_of_a_hot_place_are_of_the_step_and_of_that_place():
    parts = ["    " + called("aten::svd_part", 10, 45), "    " + called("aten::copy_", 10, 15)]
    profile = training(AT, "  " + called("aten::linalg_svd", 10, 60), *parts)
    (one,) = [one for one in analyze(profile, ["hotspot"]) if one.lines and one.lines[0].line == 43]
    assert one.title == "aten::linalg_svd takes 55 % of the step"  # 120 of the 220 ms of ten steps
    assert one.evidence[0] == "12.0 ms a step of 22.0 ms"
    assert one.evidence[2] == "of it 38 % in aten::svd_part, 13 % in aten::copy_"  # 45 and 15 of 120 ms
