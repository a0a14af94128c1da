"""The one definition of a step: known answers, and the shared traces of others by every way to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.analysis.analyze import analyze
from leadline.analysis.case import Case
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.step_rows import columns_of, of_steps, one_step
from leadline.profiles.tables import Tables
from leadline.report.training.of_trace import summarize_profile
from leadline.steps import NoSteps, Steps
from leadline.steps.model import MODULE_CALLS, OPTIMIZER, REPETITION, STEP_CALLS, WHOLE_TRACE
from leadline.steps.of_events import find_steps
from leadline.steps.of_profile import steps_of
from leadline.trace.importers import import_traces
from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.whatif import load, replay

MS = 1_000_000
SHARED = (
    "hta/cuda_event_sync.json.gz",
    "hta/nccl_data.json.gz",
    "hta/rank0_of16_cudagraph.json.gz",
    "param-dlrm-8rank-v100/dlrm_kineto.tar.gz",
    "param-linear-2080ti/linear_kineto.json.gz",
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
)


def shared(name: str) -> Path:
    path = next(
        (p / "shared/traces" / name for p in Path(__file__).resolve().parents if (p / "shared/traces").is_dir()), None
    )
    if path is None or not path.exists():
        pytest.skip("the traces of others are not beside this checkout")
    return path


@pytest.mark.parametrize("name", SHARED)
def test_analyze_whatif_and_summary_say_the_same_step(name: str) -> None:
    path = shared(name)
    profile = import_traces([path])
    steps = steps_of(profile)
    assert isinstance(steps, Steps)
    found = analyze(profile, simulate=False)
    assert found.step_ns == pytest.approx(steps.base_ns, rel=1e-6)
    assert replay(load(path)).measured_ns == pytest.approx(steps.base_ns, rel=0.01)
    by_rank = {one.rank: one.mean_ns for one in steps.ranks}
    for summary in summarize_profile(profile, path.name):
        assert summary.steps.mean_ns == pytest.approx(by_rank[summary.rank], rel=0.01)
    for one in found:
        assert one.gain.high_ns <= one.gain.of_ns == int(steps.base_ns)


@pytest.mark.parametrize("name", ["hta/alexnet_cuda_sync.json.gz", "hta/cuda_event_sync_multi_stream.json.gz"])
def test_a_trace_without_marks_names_no_step(name: str) -> None:
    path = shared(name)
    assert isinstance(steps_of(import_traces([path])), NoSteps)
    assert find_steps(read_kineto(sources(path)[0])).found_by == WHOLE_TRACE


def trace_of(tmp_path: Path, *events: tuple[str, str, float, float, int]) -> Any:
    """Spans (category, name, begin in µs, µs, correlation) of one thread, kernels on a device."""
    rows = []
    for category, name, begin, lasts, correlation in events:
        device = category == "kernel"
        rows.append(
            {
                "ph": "X", "cat": category, "name": name, "ts": begin, "dur": lasts,
                "pid": 0 if device else 1, "tid": 7 if device else 1,
                "args": {"correlation": correlation, **({"device": 0, "stream": 7} if device else {})},
            }
        )  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    return read_kineto(sources(path)[0])


def test_a_step_lasts_until_its_device_work_has_ended(tmp_path: Path) -> None:
    """Launching takes 10 µs a step, the kernels 100 µs each: three steps take 100 µs each, not 10."""
    events = []
    for step in range(3):
        events.append(("user_annotation", f"ProfilerStep#{step}", 10.0 * step, 10.0, 0))
        events.append(("cuda_runtime", "cudaLaunchKernel", 10.0 * step + 1, 2.0, step + 1))
        events.append(("kernel", "gemm", 5.0 + 100 * step, 100.0, step + 1))
    found = find_steps(trace_of(tmp_path, *events))
    assert [wall / 1000 for wall in found.walls_ns] == [105.0, 100.0, 100.0]
    assert found.mean_ns * 3 == found.steps[-1].done_ns - found.steps[0].start_ns


def test_optimizers_that_take_turns_end_one_step(tmp_path: Path) -> None:
    events = []
    for step in range(10):
        at = 100.0 * step
        events += [("cpu_op", "aten::linear", at + 5 * number, 4.0, 0) for number in range(10)]
        for number in range(4):
            begin = at + 60 + 8 * number
            events.append(("user_annotation", "Optimizer.step#Adam.step", begin, 6.0, 0))
            events.append(("cpu_op", "aten::add_", begin + 1, 2.0, 0))
            events.append(("user_annotation", "Optimizer.zero_grad#Adam.zero_grad", begin + 6, 1.0, 0))
            events.append(("cpu_op", "aten::zero_", begin + 6.2, 0.5, 0))
    found = find_steps(trace_of(tmp_path, *events))
    assert (found.found_by, len(found.everything)) == (OPTIMIZER, 10)


def test_steps_that_warm_up_are_told_and_left_out(tmp_path: Path) -> None:
    begins = [0.0, 5000.0, *(5100.0 + 100 * step for step in range(9))]
    events = [("user_annotation", f"ProfilerStep#{n}", at, 90.0, 0) for n, at in enumerate(begins)]
    found = find_steps(trace_of(tmp_path, *events))
    assert [step.number for step in found.warm_up] == [0] and "warm-up" in found.left_out
    assert found.mean_ns == pytest.approx(99_000, rel=0.01)


def test_how_often_an_operator_is_called_is_no_step() -> None:
    profile = build(
        f"""
process pools.py | pid=5
  thread main | tid=5
    python main @ pools.py:5
      operator aten::matmul | time={80 * MS}/80 call_time={80 * MS}/80"""
    )
    found = steps_of(profile)
    assert isinstance(found, NoSteps) and "leadline.step()" in found.reason
    assert not analyze(profile).findings


def test_calls_of_the_outermost_module_are_steps_of_inference() -> None:
    profile = build(
        f"""
process serve.py | pid=5
  thread main | tid=5
    python main @ serve.py:5
      phase forward
        module net [Net]
          module net.0 [Linear]
            operator aten::linear | time={70 * MS}/40 call_time={70 * MS}/40"""
    )
    found = steps_of(profile)
    assert isinstance(found, Steps)
    assert (found.number, found.rests_on) == (40, MODULE_CALLS)


def test_a_call_with_another_shape_is_a_step_as_all_others() -> None:
    """Inference over texts of many lengths: each shape has a node of its own, three calls each."""
    shapes = "".join(
        f"\n          operator aten::linear | time={3 * MS}/3 call_time={3 * MS}/3 "
        f'detail={{"shapes":[[1,{length}],[8,{length}]],"types":["float","float"]}}'
        for length in range(60)
    )
    profile = build(
        f"""
process serve.py | pid=5
  thread main | tid=5
    python main @ serve.py:5
      phase forward
        module net [Net]{shapes}"""
    )
    found = steps_of(profile)
    assert isinstance(found, Steps)
    assert (found.number, found.rests_on) == (180, MODULE_CALLS)
    loop = Case(profile).loop
    assert loop.work_ns == pytest.approx(MS, rel=0.05)


def test_marks_of_the_program_are_steps_whatever_its_optimizers_do() -> None:
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5
    python main @ train.py:5
      phase optimizer | time={MS}/5 call_time={MS}/5
    phase step | call_time={190 * MS}/19"""
    )
    found = steps_of(profile)
    assert isinstance(found, Steps)
    assert (found.number, found.rests_on, found.mean_ns) == (20, STEP_CALLS, 10 * MS)


def test_a_sequence_that_repeats_unsteadily_is_no_step(tmp_path: Path) -> None:
    def repeated(*lengths: float) -> str:
        events, at = [], 0.0
        for length in lengths:
            for name, share in (("a", 0.1), ("b", 0.3), ("c", 0.6)):
                events.append(("cpu_op", name, at + length * share, 1.0, 0))
            at += length
        return find_steps(trace_of(tmp_path, *events)).found_by

    assert repeated(100, 100, 100) == REPETITION
    assert repeated(100, 3000, 100) == WHOLE_TRACE


@pytest.mark.parametrize("first", [0, 1, 500])
@pytest.mark.parametrize("begun", [True, False])
def test_as_many_steps_ended_as_the_beginning_of_the_first_says(first: int, begun: bool) -> None:
    """A loop that goes on at step 500, and a file that begins where another one ended, know when their first began."""
    lines = "process a | pid=7\n  thread main | tid=7 wall_ns=90\n    phase step | call_time=60/6\n    operator aten::mm | time=54/6 call_time=54/6"
    drawn = build(lines)
    rows = of_steps(one_step(first + number, 10) for number in range(6))
    profile = Profile(
        Tables({**drawn.tables.columns, **columns_of({0: rows})}),
        {**drawn.meta, "processes": [{"pid": 7, "first_step_begun": begun}]},
    )
    found = steps_of(profile)
    assert found.number == (6 if begun or first == 0 else 7)
    assert found.mean_ns == 10
