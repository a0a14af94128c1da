"""Damaged traces, few in every run and many where asked for, and the damages of the list that users will meet, each with
what it must say. The fuzzer runs in a process of its own, which limits its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.trace.damaged import sample

from leadline.trace.tables import TraceError
from leadline.whatif import Graph, load, rank

ROOT = Path(__file__).parents[2]


def run_fuzzer(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.trace.fuzz", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_damaged_traces_are_answered_or_get_one_sentence(tmp_path: Path) -> None:
    run_fuzzer("--files", "150", "--seconds", "120", "--keep", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_fuzz_many_damaged_traces(tmp_path: Path, seed: int) -> None:
    run_fuzzer("--seconds", "150", "--seed", str(seed), "--keep", str(tmp_path))


def loaded(folder: Path, trace: dict[str, Any], name: str = "trace.json") -> Graph:
    path = folder / name
    path.write_text(json.dumps(trace), encoding="utf-8")
    return load(path)


def warned(graph: Graph, text: str) -> bool:
    return any(text in warning for warning in graph.info.warnings)


def test_the_sample_itself_is_read_without_complaint(tmp_path: Path) -> None:
    graph = loaded(tmp_path, sample())
    assert not any("left out" in warning or "ends early" in warning for warning in graph.info.warnings)
    report = rank(graph)
    assert abs(report.replay_error) < 0.01
    assert {"amp", "fused_optimizer", "batch_size"} <= {found.name for found in report.scenarios}


def test_the_end_is_missing(tmp_path: Path) -> None:
    text = json.dumps(sample())
    (tmp_path / "cut.json").write_text(text[: len(text) // 2], encoding="utf-8")
    assert warned(load(tmp_path / "cut.json"), "ends inside the list of events")


def test_correlations_are_missing(tmp_path: Path) -> None:
    trace = sample()
    for event in trace["traceEvents"]:
        event.get("args", {}).pop("correlation", None)
    assert warned(loaded(tmp_path, trace), "without a record; they keep their measured start")


def test_no_device_events(tmp_path: Path) -> None:
    trace = sample()
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") not in ("kernel", "gpu_memcpy")]
    report = rank(loaded(tmp_path, trace))
    assert any("no device work" in warning for warning in report.warnings)
    assert "mixed precision is predicted for GPUs only" in report.not_applicable["amp"]


def test_a_window_without_a_step(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(sample()), encoding="utf-8")
    with pytest.raises(TraceError, match=r"no step between 7 and 9 in trace\.json; it has steps 0 to 1"):
        load(tmp_path / "trace.json", window=(7, 9))


def test_waits_in_a_circle_are_a_sentence_or_an_answer(tmp_path: Path) -> None:
    """Two streams that say to wait for one another's later work: nothing may hang, and no time may be invented."""
    trace = sample()
    for event in trace["traceEvents"]:
        if event.get("cat") == "cuda_sync":
            event["args"].update(stream=7, wait_on_stream=7)
    assert abs(rank(loaded(tmp_path, trace)).replay_error) < 0.01


def test_negative_durations(tmp_path: Path) -> None:
    trace = sample()
    trace["traceEvents"][5]["dur"] = -50
    assert warned(loaded(tmp_path, trace), "1 event has a negative duration, which counts as 0 ns")


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    trace = sample()
    for event in trace["traceEvents"][-12:-6]:
        event["ts"] += 1e11
    assert warned(loaded(tmp_path, trace), "(a clock jump): left out")


def steps_of_one_thread(pid: int, steps: int, step_us: float, begin_us: float = 0.0) -> list[dict[str, Any]]:
    """A CPU program: marks, and four operators in each step."""
    events = []
    for step in range(steps):
        base = begin_us + step * step_us
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": base, "dur": step_us})
        for place in range(4):
            at = base + (0.1 + 0.2 * place) * step_us
            events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{place}", "ts": at, "dur": 0.1 * step_us})
    return [{**event, "pid": pid, "tid": pid, "args": {}} for event in events]


def test_a_clock_that_jumps_by_seconds_within_a_step(tmp_path: Path) -> None:
    """Forty seconds are not long enough to be another clock, and no step lasts as long."""
    events = steps_of_one_thread(1, 6, 20_000.0)
    for event in events:
        if event["ts"] >= 4.5 * 20_000:
            event["ts"] += 40e6
    graph = loaded(tmp_path, {"traceEvents": events})
    assert warned(graph, "nothing was recorded for up to 40 s in step 4")
    assert graph.info.steps == (0, 1, 2, 3)
    assert graph.info.measured_ns < 100_000_000


def test_a_loop_that_waits_for_its_loader_is_no_jump(tmp_path: Path) -> None:
    events = steps_of_one_thread(1, 6, 20_000.0)
    for event in events:
        if event["ts"] >= 4.5 * 20_000:
            event["ts"] += 40e6
    events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_Iter.__next__", "pid": 1, "tid": 1,
                   "ts": 4.45 * 20_000, "dur": 40e6, "args": {}})  # fmt: skip
    graph = loaded(tmp_path, {"traceEvents": events})
    assert not warned(graph, "nothing was recorded")
    assert len(graph.info.steps) == 6


def test_of_two_programs_in_one_trace_one_is_followed(tmp_path: Path) -> None:
    alone = loaded(tmp_path, {"traceEvents": steps_of_one_thread(1, 6, 20_000.0)})
    both = steps_of_one_thread(1, 6, 20_000.0) + steps_of_one_thread(2, 3, 70_000.0, 3_000.0)
    update = {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 2, "tid": 2, "args": {}}
    both.append({**update, "ts": 9_000.0, "dur": 10.0})
    graph = loaded(tmp_path, {"traceEvents": both})
    assert warned(graph, "Only process 1 is analysed and the others are left out")
    assert graph.info.measured_ns == alone.info.measured_ns
    assert len(graph) == len(alone)
    assert "Optimizer.step#SGD.step" not in graph.names


@pytest.mark.parametrize("size", [0, 3, 4096, "many"])
def test_a_group_that_contradicts_its_members(tmp_path: Path, size: Any) -> None:
    trace = sample()
    for event in trace["traceEvents"]:
        if "Collective name" in event.get("args", {}):
            event["args"]["Group size"] = size
    assert warned(loaded(tmp_path, trace), "contradict their members or the job's 2 workers")
    for event in trace["traceEvents"]:
        if "Collective name" in event.get("args", {}):
            event["args"]["Group size"] = 2
    assert not warned(loaded(tmp_path, trace), "contradict")


def test_an_event_that_lasts_for_years(tmp_path: Path) -> None:
    trace = sample()
    trace["traceEvents"][3]["dur"] = 1e14
    graph = loaded(tmp_path, trace)
    assert warned(graph, "longer than all of them (a clock jump): left out")
    assert graph.info.measured_ns < 10_000_000


def test_files_of_one_rank_given_twice(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        loaded(tmp_path, sample(), name)
    with pytest.raises(TraceError, match="2 of the 2 traces are of rank 0"):
        load([tmp_path / "a.json", tmp_path / "b.json"])


def test_files_that_do_not_name_their_rank(tmp_path: Path) -> None:
    nameless = {key: value for key, value in sample().items() if key != "distributedInfo"}
    for name in ("a.json", "b.json"):
        loaded(tmp_path, nameless, name)
    assert warned(load([tmp_path / "a.json", tmp_path / "b.json"]), "do not name distinct ranks")


def test_ranks_of_different_jobs(tmp_path: Path) -> None:
    other = sample()
    for event in other["traceEvents"]:
        if event["name"].startswith("ProfilerStep#"):
            event["name"] = f"ProfilerStep#{int(event['name'][13:]) + 40}"
    loaded(tmp_path, sample(), "a.json")
    loaded(tmp_path, other, "b.json")
    with pytest.raises(TraceError, match="have no step in common"):
        load([tmp_path / "a.json", tmp_path / "b.json"])


def test_an_unknown_gpu(tmp_path: Path) -> None:
    """Mixed precision might gain nothing; the answer says so and why."""
    trace = sample()
    trace["deviceProperties"][0]["name"] = "Some GPU of 2031"
    report = rank(loaded(tmp_path, trace))
    assert any("amp: Some GPU of 2031 is not in the factor files" in warning for warning in report.warnings)


@pytest.mark.parametrize("value", [float("nan"), "soon", None, [], 1e300])
def test_a_time_that_is_none(tmp_path: Path, value: Any) -> None:
    trace = sample()
    trace["traceEvents"][4]["ts"] = value
    graph = loaded(tmp_path, trace)
    assert warned(graph, "left out")
    assert graph.info.measured_ns < 10_000_000
