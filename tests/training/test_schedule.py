"""Which steps a window holds: exactly the ones asked for, whenever the process began and however the loop counts."""

from pathlib import Path

import pytest
from tests.training.loops import finished, run, worked

import leadline
from leadline.capture.training.config import TrainingConfig
from leadline.capture.training.schedule import phase
from leadline.training import build_profiler


def steps_of(profile) -> list[int]:
    assert list(profile.window.steps) == worked(profile), "a step in the window lacks its work, or has another's"
    return worked(profile)


@pytest.mark.parametrize("told", [True, False], ids=["start(next_step)", "start()"])
@pytest.mark.parametrize(
    ("begin", "end", "first", "last", "expected"),
    [
        (5, 8, 0, 12, [5, 6, 7]),
        (5, 8, 1, 12, [5, 6, 7]),
        (0, 3, 0, 6, [0, 1, 2]),
        (1, 3, 1, 6, [1, 2]),
        (1, 2, 0, 6, [1]),
        (5, 8, 5, 12, [5, 6, 7]),  # resumed at the window's first step
        (5, 8, 6, 12, [6, 7]),  # inside it
        (5, 8, 7, 12, [7]),
        (5, 8, 8, 12, []),  # behind it
        (5, 8, 100, 103, []),
        (5, 50, 0, 8, [5, 6, 7]),  # the run ends inside the window
        (5, 8, 0, 3, []),  # before it
        (1000, 1002, 998, 1004, [1000, 1001]),
    ],
)
def test_a_window_of_absolute_steps(tmp_path: Path, begin, end, first, last, expected, told) -> None:
    profile = run(tmp_path, range(first, last), next_step=first if told else None, start_step=begin, end_step=end)
    assert steps_of(profile) == expected


@pytest.mark.parametrize("first", [0, 1, 6, 7, 11])
@pytest.mark.parametrize(
    "cycle",
    [
        {"wait": 4, "warmup": 1, "active": 3, "repeat": 1},
        {"wait": 2, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3},
        {"wait": 1, "active": 1},
        {"active": 2, "repeat": 2, "skip_first": 1},
    ],
)
def test_cycles_record_what_torch_would(tmp_path: Path, cycle, first) -> None:
    torch_profiler = pytest.importorskip("torch", reason="its schedule is the reference").profiler
    schedule = torch_profiler.schedule(**{"wait": 0, "warmup": 0, "repeat": 0, **cycle})
    recording = (torch_profiler.ProfilerAction.RECORD, torch_profiler.ProfilerAction.RECORD_AND_SAVE)
    expected = [step for step in range(first, 16) if schedule(step) in recording]
    assert steps_of(run(tmp_path, range(first, 16), **cycle)) == expected


def test_phases_equal_those_of_torch_on_a_grid() -> None:
    torch_profiler = pytest.importorskip("torch", reason="its schedule is the reference").profiler
    names = {"NONE": "off", "WARMUP": "warm-up", "RECORD": "record", "RECORD_AND_SAVE": "save"}
    for wait in range(3):
        for warmup in range(3):
            for active in range(1, 4):
                for repeat in range(3):
                    for skip_first in range(3):
                        cycle = {
                            "wait": wait,
                            "warmup": warmup,
                            "active": active,
                            "repeat": repeat,
                            "skip_first": skip_first,
                        }
                        schedule = torch_profiler.schedule(**cycle)
                        config = TrainingConfig(**cycle)
                        for step in range(25):
                            assert phase(config, step).value == names[schedule(step).name], (cycle, step)


def test_steps_without_numbers_are_counted_up(tmp_path: Path) -> None:
    assert steps_of(run(tmp_path, range(12), tell=False, start_step=5, end_step=8)) == [5, 6, 7]


def test_micro_batches_make_one_step_when_all_of_them_have_ended(tmp_path: Path) -> None:
    profile = run(tmp_path, range(30), start_step=2, end_step=4, accumulation=3)
    assert profile.window.steps == (2, 3)
    assert worked(profile) == [6, 7, 8, 9, 10, 11]


def test_a_resume_between_micro_batches_counts_the_rest_as_its_step(tmp_path: Path) -> None:
    profile = run(tmp_path, range(7, 30), start_step=2, end_step=4, accumulation=3)
    assert profile.window.steps == (2, 3)
    assert worked(profile) == [7, 8, 9, 10, 11]


def test_evaluation_between_steps_is_in_no_step(tmp_path: Path) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), start_step=1, end_step=3, rank=0)
    profiler.start(0)
    for step in range(4):
        profiler.begin_step(step)
        with leadline.region(f"work {step}"):
            pass
        profiler.step(step)
        with leadline.region("evaluation"):
            pass
    profile = finished(profiler)
    assert profile.window.steps == (1, 2)
    events, tree = profile.events, profile.tree
    marks = [
        (a, a + d) for a, d, k in zip(events["start_ns"], events["duration_ns"], events["kind"], strict=True) if k == 3
    ]
    inside = [
        tree.node(int(node)).name
        for node, start, kind in zip(events["node"], events["start_ns"], events["kind"], strict=True)
        if kind != 3 and any(low <= start < high for low, high in marks)
    ]
    assert [name for name in inside if name.startswith(("work", "eval"))] == ["work 1", "work 2"]


def test_steps_that_go_backwards_are_said_once_and_keep_their_numbers(tmp_path: Path, capfd) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), start_step=5, end_step=8, rank=0)
    profiler.start(0)
    for step in (0, 1, 2, 9, 4, 5, 6, 3, 2, 1, 0):
        profiler.step(step)
    assert finished(profiler).window.steps == (5, 6)
    assert capfd.readouterr().err.count("steps go backwards, from 9 to 4") == 1


def test_a_skipped_number_does_not_shift_the_others(tmp_path: Path) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), start_step=5, end_step=8, rank=0)
    profiler.start(0)
    for step in (0, 1, 2, 3, 4, 6, 7, 8, 9):
        profiler.step(step)
    assert finished(profiler).window.steps == (6, 7)


def test_a_step_told_twice_counts_once(tmp_path: Path, capfd) -> None:
    profiler = build_profiler(enable=True, trace_dir=str(tmp_path), start_step=1, end_step=3, rank=0)
    profiler.start(0)
    for step in (0, 0, 1, 1, 2, 2, 3, 3):
        profiler.step(step)
    assert finished(profiler).window.steps == (1, 2)
    assert "accumulation" in capfd.readouterr().err


def test_a_run_that_ends_inside_the_window_says_so(tmp_path: Path, capfd) -> None:
    run(tmp_path, range(7), start_step=5, end_step=9)
    assert "ended after step 6, inside the window (steps 5 to 8)" in capfd.readouterr().err


def test_the_profile_of_a_first_step_that_was_not_wanted_has_no_event_of_it(tmp_path: Path) -> None:
    profile = run(tmp_path, range(100, 103), start_step=5, end_step=8)
    assert len(profile.events["node"]) == 0


def test_a_run_that_ends_before_the_window_says_so(tmp_path: Path, capfd) -> None:
    run(tmp_path, range(5), start_step=5, end_step=9)
    assert "ended after step 4, before the window (steps 5 to 8)" in capfd.readouterr().err
