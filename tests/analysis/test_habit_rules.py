"""Rules that rest on what the capture side says beside operators: pauses of the collector, gradients without a use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from leadline.analysis.analyze import analyze
from leadline.analysis.rules.processes import workers
from leadline.profiles.build import build

MS = 1_000_000


def program(*inside: str, unused=None):
    lines = [
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=100000000",
        f"    phase step | call_time={90 * MS}/9",
        "    python main @ /home/ada/train.py:42",
        "      module model [Net]",
        "        module model.backbone [Sequential]",
        f"          operator aten::linear | time={30 * MS}/10 call_time={30 * MS}/10",
        "            phase backward",
        f"              operator AddmmBackward0 | time={20 * MS}/10 call_time={20 * MS}/10",
        *("    " + line for line in inside),
        "    python main @ /home/ada/train.py:44",
        f"      phase optimizer | time={10 * MS}/10 call_time={10 * MS}/10",
    ]
    profile = build("\n".join(lines))
    habits = {} if unused is None else {"habits": {"unused_gradients": unused}}
    profile.meta.update(program={"argv": ["train.py"], "cwd": "/home/ada"}, available={"torch": {"ok": True, **habits}})
    return profile


PAUSES = (
    "python main @ /home/ada/train.py:43",
    f"  phase garbage collection | call_time={20 * MS}/5",
)
UNUSED = {
    "modules": [{"module": "backbone", "class": "Sequential", "parameters": 1_000_000}],
    "parameters": 1_000_000,
    "bytes": 4_000_000,
    "of_parameters": 1_100_000,
}


def one(found, rule):
    return next((finding for finding in found if finding.rule == rule), None)


def test_pauses_of_the_collector_are_named_at_the_line_that_caused_them():
    found = one(analyze(program(*PAUSES)), "garbage_collection")
    assert found.severity.value == "warning"
    assert "20 % of the step" in found.title
    assert (found.lines[0].short, found.lines[0].line) == ("train.py", 43)
    assert 2 * MS < found.gain.high_ns < 5 * MS  # with a part of what runs behind them, its caches cold


def test_a_package_that_collects_is_named_with_its_line(tmp_path):
    file = tmp_path / "site-packages" / "graphs" / "loop.py"
    file.parent.mkdir(parents=True)
    file.write_text("import gc\ngc.collect()\n")
    called = (PAUSES[0], f"  python epoch @ {file}:2", "  " + PAUSES[1])
    found = one(analyze(program(*called)), "garbage_collection")
    assert found.title.endswith(", since a package calls it")
    assert found.evidence[1] == "called in graphs/loop.py:2 epoch"
    file.write_text("import gc\nnodes = {}\n")
    assert one(analyze(program(*called)), "garbage_collection").evidence[1] == "most of them in graphs/loop.py:2 epoch"


def test_pauses_before_the_loop_are_no_part_of_it():
    before = ("python main @ /home/ada/train.py:30", "  python Net.__init__ @ /home/ada/net.py:3", "  " + PAUSES[1])
    assert one(analyze(program(*before)), "garbage_collection") is None


def test_a_file_without_pauses_says_so():
    reasons = {told.rule: told.reason for told in analyze(program()).not_applicable}
    assert reasons["garbage_collection"] == "pauses of the garbage collector were not recorded"
    assert reasons["unused_gradients"].startswith("parameters and optimizers were not compared")


def test_modules_whose_gradients_nobody_uses_are_named_with_their_backward_pass():
    found = one(analyze(program(unused=UNUSED)), "unused_gradients")
    assert found.severity.value == "warning"
    assert found.title.startswith("Gradients of 1.00 M parameters are computed and never used, 20 % of the step")
    assert found.lines[0].line == 42
    assert found.gain.expected_ns == 1_700_000  # with a tenth of the forward pass, which is recorded for it
    assert 3 * MS < found.gain.high_ns < 5 * MS  # with a part of the time between operators
    assert "backbone" in found.evidence[1]


@pytest.mark.parametrize(
    "unused", [{}, {**UNUSED, "modules": [{"module": "head", "class": "Linear", "parameters": 5}]}]
)
def test_nothing_is_said_where_all_is_used_or_the_modules_took_no_time(unused):
    found = analyze(program(unused=unused))
    assert one(found, "unused_gradients") is None
    assert "unused_gradients" not in {told.rule for told in found.not_applicable}


def test_checks_for_nan_behind_backward_operators_are_anomaly_mode():
    engine = "autograd::engine::evaluate_function: MulBackward0"
    checks = [f"operator aten::isnan | time={MS}/10 call_time={MS}/10"] if engine else []
    lines = (
        "python main @ /home/ada/train.py:43",
        "  operator aten::mul | time=1000000/10 call_time=1000000/10",
        "    phase backward",
        f"      operator {engine} | time={MS}/10 call_time={2 * MS}/10",
        *("        " + check for check in checks),
    )
    found = one(analyze(program(*lines)), "debug_modes")
    assert "anomaly detection is on" in found.title
    assert one(analyze(program(*lines[:-1])), "debug_modes") is None


def saving(times, ms):
    return program("python main @ /home/ada/train.py:45", f"  phase saving | call_time={ms * MS}/{times}")


def test_checkpoints_in_every_step_are_named_at_their_line_and_are_no_python_between_operators():
    found = analyze(saving(10, 20))
    named = one(found, "saving_in_loop")
    assert (named.severity.value, named.lines[0].line) == ("warning", 45)
    assert named.title == "Saving takes 20 % of the step"
    assert named.evidence == ("10 files are written in 10 steps, 20.0 ms in all: 2.00 ms of a step's 10.0 ms",)
    assert (named.gain.low_ns, named.gain.high_ns) == (800_000, 2 * MS)  # one base for title, evidence and gain


def test_a_checkpoint_now_and_then_is_told_as_that_or_not_at_all():
    assert one(analyze(saving(1, 1)), "saving_in_loop") is None
    seldom = one(analyze(saving(2, 4)), "saving_in_loop")
    assert seldom.severity.value == "info"
    assert seldom.evidence == ("2 files are written in 10 steps, 4.00 ms in all: 400 µs of a step's 10.0 ms",)


def test_deep_copies_of_tensors_are_named_and_copies_of_other_code_are_not():
    def copies(file):
        frames = ("python main @ /home/ada/train.py:46", f"  python deepcopy @ {file}:137")
        return program(*frames, f"    operator aten::clone | time={20 * MS}/40 call_time={20 * MS}/40")

    named = one(analyze(copies("/usr/lib/python3.11/copy.py")), "saving_in_loop")
    assert (named.lines[0].line, named.severity.value) == (46, "warning")
    assert one(analyze(copies("/home/ada/mycopy.py")), "saving_in_loop") is None


def loading(*passes, wait_ms=30):
    phase = f'time={wait_ms * MS}/10 call_time={wait_ms * MS}/10 detail={{"loader":"_MultiProcessingDataLoaderIter"}}'
    loaded = program("python main @ /home/ada/train.py:40", f"  phase data loading | {phase}")
    loaded.meta["available"]["torch"]["habits"] = {"passes": list(passes)}
    return loaded


def test_workers_that_each_pass_starts_anew_are_named_with_what_they_were_waited_for():
    passes = {"starts": 5, "start_ns": 5 * MS, "first_ns": 20 * MS}
    found = [one for one in analyze(loading(passes)) if one.rule == "data_loading"]
    started = next(one for one in found if "restarted" in one.title)
    assert "5 times" in started.title
    assert started.evidence == ("starting them takes 1.00 ms each time, and their first batch 4.00 ms",)
    assert started.gain.expected_ns * 10 == pytest.approx(0.8 * 20 * MS)  # four starts of five, over ten steps
    waits = next(one for one in found if "waits for data" in one.title)
    assert any(text.startswith("67 % of it is the wait for the first batch of workers") for text in waits.evidence)
    assert "persistent_workers=True" in waits.remedy


@pytest.mark.parametrize(("tensors", "many"), [(224, True), (4, False)])
def test_a_batch_of_many_tensors_is_told_with_what_joins_them(tensors, many):
    passes = {"starts": 1, "start_ns": MS, "first_ns": MS, "tensors": tensors}
    (waits,) = [one for one in analyze(loading(passes)) if one.rule == "data_loading"]
    assert ("a batch is 224 tensors, and each crosses processes by itself" in waits.evidence) == many
    assert waits.remedy.startswith("Let workers join what belongs together into few tensors") == many


@pytest.mark.parametrize("passes", [(), ({"starts": 2, "start_ns": MS, "first_ns": MS},) * 2])
def test_workers_that_one_loader_starts_once_or_twice_are_no_finding(passes):
    found = [one for one in analyze(loading(*passes)) if one.rule == "data_loading"]
    assert not any("restarted" in one.title for one in found)
    assert not any(one.remedy.startswith("Keep them") for one in found)


@pytest.mark.parametrize(
    ("lives", "number"),
    [
        ([], 0),
        ([(0, 100), (1, 100)], 2),
        ([(0, 60), (0, 60), (50, 110), (50, 110)], 2),  # of two epochs, the second begins while the first ends
        ([(0, 100), (0, 100), (0, 100), (90, 100)], 3),
    ],
)
def test_workers_that_only_meet_at_the_end_of_an_epoch_are_not_added_up(lives, number):
    parent = SimpleNamespace(pid=1, parent_pid=0, rank=-1, start_ns=0, end_ns=100)
    children = [
        SimpleNamespace(pid=2 + i, parent_pid=1, rank=-1, start_ns=start, end_ns=end)
        for i, (start, end) in enumerate(lives)
    ]
    assert workers(SimpleNamespace(profile=SimpleNamespace(processes=[parent, *children]))) == number
