"""The analyzer as a whole: what it finds in drawn programs, how it ranks, its options, and rules of others."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.analysis import simulated
from leadline.analysis.analyze import analyze
from leadline.analysis.findings import as_object, from_object
from leadline.analysis.rules import RULES, RuleError
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS = 1_000_000


def training(*inside: str, optimizer_ms: int = 1, loading_ms: int = 1, steps: int = 10) -> Profile:
    """Steps of 10 ms: data loading, forward and backward, optimizer; `inside` are further lines below the loop."""
    rest = (10 - optimizer_ms - loading_ms) * MS * steps
    lines = [
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=100000000",
        "    python <module> @ /home/ada/train.py:60",
        "      python main @ /home/ada/train.py:41",
        f"        phase data loading | time={loading_ms * MS * steps}/{steps} call_time={loading_ms * MS * steps}/{steps}",
        "      python main @ /home/ada/train.py:42",
        "        phase forward",
        "          module model [Net]",
        f"            operator aten::linear | time={rest}/{steps} call_time={rest}/{steps}",
        *("      " + line for line in inside),
        "      python main @ /home/ada/train.py:44",
        f"        phase optimizer | time={optimizer_ms * MS * steps}/{steps} call_time={optimizer_ms * MS * steps}/{steps}",
    ]
    profile = build("\n".join(lines))
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, host={"cpus": 8})
    return profile


def names(found):
    return [one.rule for one in found]


def named(found, rule):
    return next(one for one in found if one.rule == rule)


def test_a_loop_that_waits_for_data_is_named_on_its_line():
    found = analyze(training(loading_ms=6))
    assert found.steps == 10
    assert found.step_ns == 10 * MS
    one = found[0]
    assert (one.rule, one.severity.value) == ("data_loading", "warning")
    assert (one.lines[0].short, one.lines[0].line, one.lines[0].function) == ("train.py", 41, "main")
    assert one.gain.of_ns == 10 * MS
    assert 0 < one.gain.low_ns <= one.gain.expected_ns <= one.gain.high_ns == 6 * MS


def test_a_loop_with_its_data_at_hand_is_not_blamed():
    assert "data_loading" not in names(analyze(training(loading_ms=1)))


def test_a_first_batch_that_takes_long_is_not_every_batch():
    profile = build(
        """
        python main @ t.py:1
          phase data loading | time=900000000,100000,100000,100000,100000,100000,100000,100000 call_time=900000000,100000,100000,100000,100000,100000,100000,100000
        python main @ t.py:2
          phase optimizer | time=8000000/8 call_time=8000000/8
        """
    )
    assert "data_loading" not in names(analyze(profile))


def test_a_slow_first_batch_and_an_idle_device_are_told_where_the_loop_waits():
    profile = build(
        """
        python main @ t.py:1
          phase data loading | time=900000000,6000000,6000000,6000000,6000000,6000000,6000000,6000000 call_time=900000000,6000000,6000000,6000000,6000000,6000000,6000000,6000000 gpu_idle_time@0=40000000/8
        python main @ t.py:2
          operator aten::mm | time=8000000/8 call_time=8000000/8
            kernel gemm | gpu_time@0:7=8000000/8
        python main @ t.py:3
          phase optimizer | time=8000000/8 call_time=8000000/8
        """
    )
    told = " ".join(named(analyze(profile), "data_loading").evidence)
    assert "one batch, usually the first, took 900 ms" in told
    assert "the device idles 5.00 ms a step meanwhile" in told


def test_set_up_is_no_part_of_the_step():
    """Constructors repeat once per layer, imports once: neither is in the loop."""
    found = analyze(
        training(
            "python main @ /home/ada/train.py:39",
            "  python Net.__init__ @ /home/ada/net.py:5",
            "    operator aten::uniform_ | time=900000000/12 call_time=900000000/12",
        )
    )
    assert found.step_ns == 10 * MS


def test_values_read_many_times_a_step_are_named_with_their_count():
    found = analyze(
        training(
            "python main @ /home/ada/train.py:43",
            "  operator aten::item | time=1000000/400 call_time=2000000/400",
            "    operator aten::_local_scalar_dense | time=1000000/400 call_time=1000000/400",
        )
    )
    one = named(found, "synchronisation")
    assert one.severity.value == "info"
    assert "40 times a step" in one.title
    assert one.lines[0].line == 43
    assert 0 < one.gain.expected_ns <= one.gain.high_ns == 100_000  # nothing waits on a CPU: the calls themselves


def test_the_loss_read_once_a_step_and_the_optimizers_own_reads_are_usual():
    found = analyze(
        training(
            "python main @ /home/ada/train.py:43",
            "  operator aten::_local_scalar_dense | time=100000/10 call_time=100000/10",
            "python main @ /home/ada/train.py:45",
            "  phase optimizer | time=10/10 call_time=10/10",
            "    operator aten::_local_scalar_dense | time=100000/500 call_time=100000/500",
        )
    )
    assert "synchronisation" not in names(found)


def test_waits_for_a_device_name_what_waits():
    found = analyze(
        training(
            "python main @ /home/ada/train.py:43",
            "  operator aten::nonzero | time=20000000/10 call_time=20000000/10",
            "    api cudaStreamSynchronize | sync_time=15000000/10",
            "    kernel scan | gpu_time@0:7=10000000/10",
        )
    )
    one = named(found, "synchronisation")
    assert one.severity.value == "warning"
    assert "aten::nonzero" in one.title
    assert one.gain.high_ns == 1_500_000


def test_a_hotspot_gives_way_to_the_rule_that_knows_more():
    sorting = (
        "python main @ /home/ada/train.py:43",
        f"  operator aten::sort | time={40 * MS}/10 call_time={40 * MS}/10",
    )
    found = analyze(training(*sorting, loading_ms=6))
    assert [one.lines[0].line for one in found if one.rule == "hotspot"] == [43]


def test_what_a_model_is_made_of_is_no_finding():
    """A product takes most of a step: true of every healthy program."""
    assert [one.rule for one in analyze(training()) if one.rule == "hotspot"] == []


def test_a_hotspot_says_what_it_consists_of():
    """Attention whose matrix is written out: what takes the time is the softmax, not the operator's name."""
    found = analyze(
        training(
            "python main @ /home/ada/train.py:43",
            "  operator aten::scaled_dot_product_attention | call_time=60000000/10",
            f"    operator aten::_softmax | time={40 * MS}/10 call_time={40 * MS}/10",
            f"    operator aten::bmm | time={20 * MS}/20 call_time={20 * MS}/20",
        )
    )
    hot = named(found, "hotspot")
    assert any("67 % in softmax" in text or "67 % in aten::_softmax" in text for text in hot.evidence)
    assert "scaled_dot_product_attention" not in hot.remedy


def test_special_notes_come_before_general_ones():
    found = analyze(
        training(
            "python main @ /home/ada/train.py:43",
            "  operator aten::item | time=1000000/400 call_time=2000000/400",
            "    operator aten::_local_scalar_dense | time=1000000/400 call_time=1000000/400",
            "python main @ /home/ada/train.py:45",
            f"  operator aten::sort | time={90 * MS}/10 call_time={90 * MS}/10",
        )
    )
    assert names(found) == ["synchronisation", "hotspot"]


def test_options_change_what_is_found_and_say_why():
    profile = training(loading_ms=2)
    assert analyze(profile, ["data_loading"], {"data_loading.share": "50%"})[0].severity.value == "info"
    assert not analyze(profile, ["data_loading"], {"data_loading.info": "50"})
    for rule in RULES:
        assert rule.asks.endswith("?")
        assert all(option.reason for option in rule.options)
        assert rule.values({option.name: f"{option.default:g}" for option in rule.options}) == rule.values({})


@pytest.mark.parametrize(
    ("rules", "settings", "sentence"),
    [
        (["hotspots"], {}, "did you mean hotspot"),
        ([], {"hotspot.shares": "1"}, "its options are: share, most"),
        ([], {"hotspot.share": "many"}, "hotspot.share=many is not a number in %"),
        ([], {"hotspot.share": "-1"}, "is not a number"),
        ([], {"share": "1"}, "names no rule"),
        (["nothing.py"], {}, "There is no rule file nothing.py"),
    ],
)
def test_wrong_names_and_values_are_one_sentence(rules, settings, sentence):
    with pytest.raises(RuleError, match=sentence.replace("%", "%")):
        analyze(training(), rules, settings)


def test_a_profile_without_steps_says_so_for_every_rule():
    found = analyze(build("python main @ t.py:1\n  operator aten::add | time=5 call_time=5"))
    assert not found.findings
    assert {one.rule for one in found.not_applicable} == {rule.name for rule in RULES}
    assert all(one.reason for one in found.not_applicable)


def test_an_empty_profile_is_no_error():
    assert not analyze(build("")).findings


def test_findings_survive_json():
    found = analyze(training(loading_ms=6))
    assert from_object(as_object(found)) == found
    assert training(loading_ms=6).findings().findings == found.findings


RULE = """
from leadline.analysis.rules import Rule
from leadline.analysis.rules.base import Finding, Severity

class {name}(Rule):
    name = "{rule}"
    asks = "Is it Tuesday?"
    def check(self, case, values):
        {body}
"""


def test_a_rule_of_the_users_stands_beside_ours(tmp_path):
    body = 'return [Finding("mine", Severity.WARNING, "Tuesday", case.no_gain("calendar"), (), (), (), "Wait.")]'
    (tmp_path / "mine.py").write_text(RULE.format(name="Mine", rule="mine", body=body))
    found = analyze(training(loading_ms=6), [str(tmp_path / "mine.py")])
    assert {"mine", "data_loading"} <= set(names(found))


def test_rules_of_installed_packages_are_asked_and_one_that_cannot_be_loaded_is_named(tmp_path, monkeypatch):
    body = 'return [Finding("mine", Severity.WARNING, "Tuesday", case.no_gain("calendar"), (), (), (), "Wait.")]'
    (tmp_path / "tuesday_rules.py").write_text(RULE.format(name="Mine", rule="mine", body=body))
    about = tmp_path / "tuesday_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tuesday-rules\nVersion: 1.0\n")
    points = "[leadline.rules]\nmine = tuesday_rules:Mine\nbroken = tuesday_rules:Nothing\n"
    (about / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = analyze(training(loading_ms=6))
    assert {"mine", "data_loading"} <= set(names(found))
    ((rule, error),) = [(one.rule, one.error) for one in found.failed]
    assert rule == "broken" and error.startswith("could not be loaded: AttributeError")


def test_a_rule_that_raises_is_named_and_the_others_run(tmp_path):
    (tmp_path / "bad.py").write_text(RULE.format(name="Bad", rule="bad", body="return 1 / 0"))
    found = analyze(training(loading_ms=6), [str(tmp_path / "bad.py")])
    assert [(one.rule, one.error) for one in found.failed] == [("bad", "ZeroDivisionError: division by zero")]
    assert "data_loading" in names(found)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:\n", "bad.py:1: "),
        ("x = 1\ny = nothing\n", "bad.py:2: NameError"),
        ("x = 1\n", "defines no rule"),
    ],
)
def test_a_broken_rule_file_is_told_with_the_place(tmp_path, text, sentence):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(RuleError, match=sentence):
        analyze(training(), [str(tmp_path / "bad.py")])


def test_a_long_window_is_simulated_on_some_of_its_steps(monkeypatch):
    """The whole would take minutes, and a gain per step does not need it."""
    rows = "\n".join(f"{step * 100 + place} 5 operator mm 0 {step}" for step in range(50) for place in (0, 10, 20, 30))
    profile = build(
        "process train.py\n  thread main\n    operator aten::mm #mm | time=1000/200\n",
        events=f"start_ns duration_ns kind node thread step\n{rows}\n",
    )
    monkeypatch.setattr(simulated, "_MOST_EVENTS", 40)
    told = simulated.Simulated(profile)
    some = told._some_steps()
    assert np.unique(some.events["step"]).tolist() == list(range(20, 30))
    assert len(some.events["step"]) == 40
    assert told.notes == ["Gains are simulated on 10 of the 50 steps of the trace window."]
    assert len(profile.events["step"]) == 200


def timed(step_ms: int, compile_ms: int = 0) -> Profile:
    """Ten steps of a loop: 2 ms of operators each, and what the clock says between their ends."""
    compiled = compile_ms * MS
    return build(
        f"""
process train.py | pid=5
  thread main | tid=5
    python main @ train.py:5
      operator aten::mm | time={20 * MS}/10 call_time={20 * MS}/10
      phase compile | time={10 * compiled}/10 call_time={10 * compiled}/10
    python main @ train.py:6
      phase optimizer | time=10/10 call_time=10/10
    phase step | call_time={9 * step_ms * MS}/9""".lstrip("\n")
    )


def test_a_step_takes_what_the_clock_says_and_python_is_what_no_operator_took():
    found = analyze(timed(10), ["python_overhead"])
    assert found.step_ns == 10 * MS
    assert "80 % of a step is spent outside operators" in found[0].title
    assert found[0].gain.high_ns == pytest.approx(8 * MS, rel=1e-6)


def little_work(cpu_ms: int, least_ms: float = 4, work_ms: int = 2) -> Profile:
    """Ten steps of 4 ms, `work_ms` of all in ten operators each; the thread had a core for `cpu_ms` of 40 ms."""
    steps = ",".join(str(int(ms * MS)) for ms in (least_ms, *[(36 - least_ms) / 8] * 8))
    return build(
        f"""
process train.py | pid=5
  thread main | tid=5 wall_ns={40 * MS} cpu_ns={cpu_ms * MS}
    python main @ train.py:5
      operator aten::mm | time={work_ms * MS}/100 call_time={work_ms * MS}/100
    python main @ train.py:6
      phase optimizer | time=10/10 call_time=10/10
    phase step | call_time={steps}""".lstrip("\n")
    )


def test_standing_in_line_for_a_core_is_no_python():
    assert [one.rule for one in analyze(little_work(40), ["python_overhead"])] == ["python_overhead"]
    assert [one.rule for one in analyze(little_work(10), ["python_overhead"])] == []
    assert [one.rule for one in analyze(little_work(40, least_ms=1), ["python_overhead"])] == []
    assert [one.rule for one in analyze(little_work(40, work_ms=15), ["python_overhead"])] == ["python_overhead"]
    assert [one.rule for one in analyze(little_work(40, 0.8, work_ms=15), ["python_overhead"])] == []


def test_compiling_in_every_step_is_a_part_of_the_one_step_that_there_is_and_no_python():
    found = analyze(timed(100, compile_ms=90), ["recompilation", "python_overhead"])
    assert found.step_ns == pytest.approx(100 * MS, rel=1e-6)
    assert [one.rule for one in found] == ["recompilation"]
    assert {one.gain.of_ns for one in found} == {found.step_ns}
    assert 0.8 < found[0].gain.high_ns / found[0].gain.of_ns <= 1


def test_a_package_that_does_it_for_the_users_line_is_named_with_its_own():
    package = "/opt/venv/lib/python3.11/site-packages/speech/decoding.py"
    found = analyze(
        build(
            f"""
process train.py | pid=5
  thread main | tid=5
    phase step | call_time=100000000/10
    python main @ train.py:5
      python Decoder.forward @ {package}:246
        operator aten::sort | time=90000000/10 call_time=90000000/10
    python main @ train.py:6
      phase optimizer | time=1000/10 call_time=1000/10""".lstrip("\n")
        )
    )
    hot = next(one for one in found if one.rule == "hotspot")
    assert (hot.lines[0].short, hot.lines[0].line) == ("train.py", 5)
    assert hot.evidence[-1] == "in speech/decoding.py:246 Decoder.forward"
    assert "1 call a step" in hot.evidence[1]


@pytest.mark.parametrize(
    ("asked", "does"),
    [
        ("int()", "Decide for several"),
        ("float()", "Keep the value on the device"),
        (".block_until_ready()", "Wait once"),
    ],
)
def test_a_value_of_jax_that_decides_is_not_to_be_read_later(asked: str, does: str) -> None:
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5 wall_ns={400 * MS}
    python main @ /home/ada/train.py:43
      phase turn | call_time={390 * MS}/39 detail={{"of":"step"}}
      operator jit(step) | call_time={40 * 4 * MS}/40
        operator dot_general | time={40 * 4 * MS}/40 call_time={40 * 4 * MS}/40
      operator {asked} | sync_time={40 * 2 * MS}/40
""".strip("\n")
    )
    assert named(analyze(profile), "synchronisation").remedy.startswith(does)
