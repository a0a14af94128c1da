"""Which line, module, phase and operator a measurement is booked on, and what becomes one entry."""

from __future__ import annotations

import pytest
from drawings import LIB, training

from leadline.analysis.layers import merged_layers
from leadline.names import whole_parts
from leadline.profiles.build import build
from leadline.report import BadPatternError, ReportOptions, UnknownMetricError, build_report
from leadline.report.phrases import below_text, place_text
from leadline.report.waits import WaitLine, wait_cells


def entries(text, **options):
    """(share of nothing lost) place, what lies below, value of every path."""
    report = build_report(build(text), ReportOptions(**options))
    return [(place_text(path.place), below_text(path), path.values[report.path_metric]) for path in report.paths]


def test_the_innermost_line_of_the_users_own_code_is_named():
    assert entries(f"""
    python main @ /home/ada/train.py:9
      python Block.forward @ /home/ada/model.py:3
        python Linear.forward @ {LIB}:20
          operator aten::linear | time=5
    """) == [("model.py:3 Block.forward", "aten::linear", 5)]


def test_a_callback_out_of_a_library_is_the_users_again():
    assert entries(f"""
    python main @ /home/ada/train.py:9
      python backward @ {LIB}:20
        operator outer | time=1
          python my_hook @ /home/ada/hooks.py:7
            operator aten::mul | time=5
    """) == [("hooks.py:7 my_hook", "aten::mul", 5), ("train.py:9 main", "outer", 1)]


def test_without_code_of_ones_own_a_package_comes_before_the_framework():
    package = "/usr/lib/python3.11/site-packages/transformers/trainer.py"
    assert entries(f"""
    python <module> @ /usr/lib/python3.11/runpy.py:1
      python Trainer.train @ {package}:5
        python Module.__call__ @ {LIB}:20
          operator aten::mm | time=5
    """) == [("transformers/trainer.py:5 Trainer.train", "aten::mm", 5)]


def test_no_python_at_all():
    assert entries("operator aten::mm | time=5") == [("(no Python line)", "aten::mm", 5)]


def test_nested_operators_count_for_the_outermost():
    assert entries("""
    python main @ /home/ada/t.py:1
      operator aten::linear | time=1
        operator aten::addmm | time=10
          api cudaLaunchKernel | time=2
      operator aten::relu | time=4
    """) == [("t.py:1 main", "aten::linear", 13), ("t.py:1 main", "aten::relu", 4)]


def test_an_operator_in_a_region_is_named_and_the_rest_of_the_region_too():
    assert entries("""
    region evaluate | time=7
      python main @ /home/ada/t.py:1
        operator aten::mm | time=4
    """) == [("(no Python line)", "evaluate", 7), ("t.py:1 main", "aten::mm", 4)]


def test_backward_is_an_entry_of_the_line_that_ran_forward():
    report = build_report(training())
    assert [(path.phase, path.operator) for path in report.paths[:2]] == [
        ("forward", "aten::linear"),
        ("backward", "AddmmBackward0"),
    ]
    assert {place_text(path.place) for path in report.paths[:2]} == {"model/gpt.py:12 Block.forward"}


def test_numbered_layers_are_one_entry_that_says_how_many():
    path = build_report(training()).paths[0]
    assert (path.module, path.modules, path.paths, path.calls) == ("model.h.*", 2, 4, 4)
    assert path.values == {"time": 2_600_000, "alloc_bytes": 8192, "peak_live_bytes": 8192}
    assert [(frame.kind, frame.name) for frame in path.frames[-2:]] == [
        ("operator", "aten::linear"),
        ("operator", "aten::addmm"),
    ]
    assert ("module", "model.h.1") in [(frame.kind, frame.name) for frame in path.frames]


@pytest.mark.parametrize(
    ("module", "pattern"),
    [
        ("model.h.3.attn", "model.h.*.attn"),
        ("0.1", "*.*"),
        ("conv2d.layer1", "conv2d.layer1"),
        ("experts.12", "experts.*"),
        ("", ""),
    ],
)
def test_layer_numbers(module, pattern):
    assert merged_layers(module) == pattern


def test_the_paths_add_up_to_the_total():
    report = build_report(training())
    assert sum(path.values["time"] for path in report.paths) == report.totals["time"].sum == 5_000_000


def test_sort_by_another_metric():
    report = build_report(training(), ReportOptions(sort="alloc_bytes"))
    assert [path.values["alloc_bytes"] for path in report.paths] == [8192, 8192]
    assert report.operators[0].name == "aten::addmm"
    by_count = build_report(training(), ReportOptions(sort="count"))
    assert by_count.operators[0].name == "aten::add_"
    assert by_count.path_metric == "time"
    assert build_report(training(), ReportOptions(sort="call_time")).operators[0].name == "aten::linear"


def test_an_unknown_metric_lists_the_known_ones():
    with pytest.raises(
        UnknownMetricError, match=r"no metric 'walltime' .* it has time, alloc_bytes, peak_live_bytes, count, call_time"
    ):
        build_report(training(), ReportOptions(sort="walltime"))


def test_a_bad_pattern_is_said_so():
    with pytest.raises(BadPatternError, match="is not a regular expression"):
        build_report(training(), ReportOptions(focus="("))


def test_focus_keeps_what_is_at_or_below_a_match():
    report = build_report(training(), ReportOptions(focus="Optimizer"))
    assert [path.operator for path in report.paths] == ["Optimizer.step#SGD.step"]
    assert {row.name for row in report.operators} == {"Optimizer.step#SGD.step", "aten::add_"}
    assert report.focus is not None
    assert report.focus.share == 0.1
    assert report.totals["time"].sum == 500_000


def test_hidden_library_frames_leave_the_paths_but_not_the_sums():
    with_all = build_report(training()).paths[0]
    without = build_report(training(), ReportOptions(hide_library_frames=True)).paths[0]
    assert without.values == with_all.values
    assert [frame for frame in with_all.frames if frame.file == LIB]
    assert not [frame for frame in without.frames if frame.file == LIB]


def test_many_processes_with_the_same_line_are_one_entry():
    rank = """
    process train.py {0} | pid={0} rank={0}
      thread MainThread | tid={0}
        python main @ /home/ada/t.py:1
          operator aten::mm | time=10
    """
    assert entries(rank.format(1) + rank.format(2)) == [("t.py:1 main", "aten::mm", 20)]


def test_a_caller_is_shown_whole_or_not_at_all():
    callers = "vit.py:18 forward ← vit.py:20 step ← vit.py:29 main"
    assert whole_parts(callers, 80, " ← ") == callers
    assert whole_parts(callers, 40, " ← ") == "vit.py:18 forward ← vit.py:20 step ← …"
    assert whole_parts(callers, 5, " ← ") == "vit.py:18 forward ← …"


def test_a_line_of_waits_has_its_parts_as_cells():
    line = WaitLine("forward", 10_000_000, 2_000_000, 8_000_000, 0, 0, ("`cc` held the CPU 80 %",), "")
    assert wait_cells(line) == ["forward", "10.0 ms", "20 %", "80 %", "", ""]


def test_where_there_is_no_room_a_path_keeps_its_operator_and_the_end_of_its_modules_name():
    names = "module model.base_model.model.transformer.h.0.mlp.c_fc [Conv1D]"
    text = f"python main @ train.py:3\n  {names}\n    operator aten::addmm | time=5 call_time=5"
    (path,) = build_report(build(text), ReportOptions()).paths
    assert below_text(path, notes=False, width=80) == "model.base_model.model.transformer.h.0.mlp.c_fc › aten::addmm"
    assert below_text(path, notes=False, width=40) == "…transformer.h.0.mlp.c_fc › aten::addmm"
    assert below_text(path, notes=False, width=5) == "…h.0.mlp.c_fc › aten::addmm"
