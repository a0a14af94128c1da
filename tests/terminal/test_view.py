"""What a person sees of real and drawn profiles in the terminal, key by key."""

from __future__ import annotations

import re
from pathlib import Path

from tests.terminal.looking import look, looks

from leadline.analysis import origin
from leadline.profiles.build import build

PROGRAM = """
process train.py | pid=10
  thread MainThread | tid=10 wall_ns=1000000 operator_ns=1000000
    python <module> @ /home/ada/train.py:9
      python step @ /home/ada/train.py:5
        module model.h.0 [Block]
          operator aten::mm | time=600000/2 call_time=600000/2 alloc_bytes=4096/2
        module model.h.1 [Block]
          operator aten::mm | time=300000/1 call_time=300000/1
      python wrapped @ /usr/lib/python3.11/site-packages/torch/nn/modules/module.py:7
        operator aten::relu | time=100000/1 call_time=100000/1
"""


def test_the_overview_comes_first_and_names_the_program(real):
    seen = look(real)
    assert seen.page == "overview"
    assert "workload.py" in seen.lines[0]
    assert "Hottest call paths" in seen.text


def test_the_tree_opens_the_hot_path_with_value_share_and_self():
    seen = look(build(PROGRAM), "2")
    assert seen.line("model.h.* (Block)").split()[:6] == ["900", "µs", "90", "%", "0", "ns"]
    assert "step · train.py:5" in seen.text
    assert seen.line("aten::mm").split()[:6] == ["900", "µs", "90", "%", "900", "µs"]


def test_the_cursor_opens_closes_and_tells_what_a_frame_cost():
    *_, leaf, above = looks(build(PROGRAM), "2", "end", "up", "left")
    assert leaf.chosen == "aten::mm"
    assert above.chosen == "model.h.* (Block)"
    *_, closed, _, opened = looks(build(PROGRAM), "2", "down", "left", "right", "down")
    assert "step" not in closed.text
    assert "<module> · train.py:9" in opened.text
    assert "/home/ada/train.py:9" not in opened.text  # the thread stands between them
    assert "memory" in look(build(PROGRAM), "2", "down", "down", "down").line("allocated")


def test_bottom_up_begins_with_what_spent_it():
    seen = look(build(PROGRAM), "i")
    assert "bottom-up" in seen.lines[1]
    assert seen.line("aten::mm").split()[:4] == ["900", "µs", "90", "%"]


def test_native_frames_that_only_call_others_are_left_out_with_library_frames():
    profile = build(
        """
process train.py | pid=10
  thread MainThread | tid=10 wall_ns=1000000 operator_ns=1000000
    python step @ /home/ada/train.py:5
      native at::_ops::view::call
        native c10::Dispatcher::callWithDispatchKeySlowPath<>
          native torch::autograd::VariableType::{anonymous}::view
            native at::native::view
              operator aten::view | time=100000/1 call_time=100000/1
"""
    )
    first, all_of_them = look(profile, "2").text, look(profile, "2", "h").text
    assert "at::native::view" in first and "aten::view" in first
    assert not any(name in first for name in ("_ops", "Dispatcher", "VariableType"))
    assert all(name in all_of_them for name in ("_ops", "Dispatcher", "VariableType", "at::native::view"))


def test_the_page_hides_the_same_native_frames():
    page = Path(__file__).parents[2] / "ui" / "model" / "frames.ts"
    found = re.search(r"const DISPATCH =\n\s+/(.*)/;", page.read_text(encoding="utf-8"))
    assert found is not None and found[1] == origin._DISPATCH.pattern


def test_library_frames_and_layer_numbers_are_left_out_until_they_are_asked_for():
    first = look(build(PROGRAM), "2")
    assert "wrapped" not in first.text
    assert "model.h.1" not in first.text
    assert "wrapped" in look(build(PROGRAM), "h").text
    layers = look(build(PROGRAM), "l")
    assert layers.line("model.h.0 (Block)").split()[:4] == ["600", "µs", "60", "%"]


def test_search_goes_to_the_most_expensive_first_and_says_count_and_share():
    *_, seen, after = looks(build(PROGRAM), "l", "slash", "TYPE", "n", typed="h.")
    assert "1 of 2 found, 900 µs (90 %) together" in seen.text
    assert seen.chosen == "model.h.0 (Block)"
    assert after.chosen == "model.h.1 (Block)"
    assert "Nothing with 'zebra'" in look(build(PROGRAM), "slash", "TYPE", typed="zebra").text
    assert "Not a regular expression" in look(build(PROGRAM), "slash", "TYPE", typed="/(/").text


def test_every_table_of_a_real_profile_is_shown_sorted_and_filtered(real):
    from leadline.terminal.tables import NAMES

    seen = looks(real, "3", *["right_square_bracket"] * len(NAMES))[1:]
    assert [one.table for one in seen] == [*NAMES[1:], *NAMES[:2]]
    assert all("▼" in one.text for one in seen)
    operators = look(build(PROGRAM), "3")
    assert operators.text.index("aten::mm") < operators.text.index("aten::relu")
    turned = look(build(PROGRAM), "3", "v")
    assert turned.text.index("aten::relu") < turned.text.index("aten::mm")
    *_, found, left = looks(build(PROGRAM), "3", "slash", "TYPE", "escape", typed="relu")
    assert "1 with 'relu'" in found.text
    assert "aten::mm" not in found.text
    assert "aten::mm" in left.text


def test_a_row_leads_to_the_tree_and_a_line_to_the_source(tmp_path: Path):
    seen = look(build(PROGRAM), "3", "enter")
    assert seen.page == "tree"
    assert "found" in seen.text
    file = tmp_path / "train.py"
    file.write_text("import torch\n\n\ndef step():\n    model(x)  # the hot one\n", encoding="utf-8")
    profile = build(PROGRAM.replace("/home/ada/train.py", str(file)))
    *_, source, back = looks(profile, "3", *["right_square_bracket"] * 3, "enter", "enter")
    assert source.page == "source"
    hot = source.line("the hot one")
    assert hot.split()[:5] == ["900", "µs", "900", "µs", "5"]
    assert back.page == "tree"
    assert back.chosen == "step · train.py:5"


def test_a_source_that_is_gone_is_a_sentence_and_the_lines_measured():
    seen = look(build(PROGRAM), "3", *["right_square_bracket"] * 3, "enter")
    assert "The file cannot be read here" in seen.text
    assert seen.line("µs     5").split()[:5] == ["900", "µs", "900", "µs", "5"]


def test_help_lists_the_keys_and_any_of_its_keys_closes_it(real):
    _, asked, closed = looks(real, "question_mark", "escape")
    assert "bottom-up or top-down" in asked.text
    assert "bottom-up or top-down" not in closed.text


def test_the_overview_begins_with_why_the_step_is_slow(real):
    said = real.verdict.sentence.split(",")[0]
    assert said.lower() in " ".join(look(real).lines[:12]).lower()


def test_the_source_page_opens_at_the_hottest_line(tmp_path):
    source = tmp_path / "train.py"
    source.write_text("import torch\n\n\ndef step():\n    return work()\n")
    profile = build(PROGRAM.replace("/home/ada/train.py", str(source)))
    seen = look(profile, "4")
    assert str(source) in seen.text
    assert "return work()" in seen.line("µs     5")


def test_the_timeline_has_the_lanes_of_each_step():
    profile = build(
        """
process train.py | pid=10
  thread MainThread | tid=10 wall_ns=1000000 operator_ns=1000000
    phase forward
      operator aten::mm | time=600000/2 call_time=600000/2
"""
    )
    assert "no trace window" in look(profile, "5").text.lower() or "window" in look(profile, "5").text
