"""Kinds of traces that people have: recorded with stacks, put together of ranks, damaged, written by other exporters.

Each kind is drawn here with the answer that its author would give; small inputs of others are in the shared cases.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.agree import said

from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind, LossKind
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

CASES = Path(__file__).parents[3] / "shared" / "cases"


def span(category: str, name: str, ts: float, dur: float, tid: int = 9, pid: int = 9, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def imported(tmp_path: Path, events: list[dict[str, Any]] | str, name: str = "trace.json") -> Profile:
    text = events if isinstance(events, str) else json.dumps({"traceEvents": events})
    (tmp_path / name).write_text(text, encoding="utf-8")
    return import_traces([tmp_path / name])


def above(profile: Profile, name: str) -> list[str]:
    """Names from the thread down to the first node of that name."""
    tree = profile.tree
    at = next(row for row in range(len(tree.parent)) if tree.text("name", int(tree.frame_of[row])) == name)
    found = []
    while at >= 0:
        found.append(tree.text("name", int(tree.frame_of[at])))
        at = int(tree.parent[at])
    return found[::-1][2:]


def losses(profile: Profile) -> list[tuple[str, int, str]]:
    return [(str(loss.kind), loss.count, loss.detail) for loss in profile.losses]


# ---------------------------------------------------------------- a range that is opened in a function

OPENERS = {
    "record_function": ["torch/autograd/profiler.py(783): __enter__"],
    "contextmanager": [
        "contextlib.py(132): __enter__",
        "train.py(7): mine",
        "torch/autograd/profiler.py(783): __enter__",
    ],
    "start": ["train.py(30): begin", "torch/autograd/profiler.py(783): __enter__"],
}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("name", ["fetch", "Optimizer.step#Adam.step", "enumerate(DataLoader)#_Iter.__next__"])
def test_a_range_lasts_as_long_as_it_says(tmp_path: Path, opener: str, name: str) -> None:
    frames = [
        span("python_function", text, 10 + number, 5 - number * 0.5) for number, text in enumerate(OPENERS[opener])
    ]
    profile = imported(
        tmp_path,
        [
            span("python_function", "train.py(1): <module>", 0, 300),
            *frames,
            span("user_annotation", name, 13.2, 96.8),
            span("cpu_op", "aten::mm", 20, 80),
            span("python_function", "torch/autograd/profiler.py(795): __exit__", 105, 8),
            span("python_function", "train.py(50): behind", 120, 100),
            span("cpu_op", "aten::add", 130, 10),
        ],
    )
    shown = {"fetch": "fetch", "Optimizer.step#Adam.step": "optimizer"}.get(name, "data loading")
    assert above(profile, "aten::mm") == ["main", "<module>", shown, "aten::mm"]
    assert above(profile, "aten::add") == ["main", "<module>", "behind", "aten::add"]
    kind = FrameKind.REGION if name == "fetch" else FrameKind.PHASE
    assert said.of_tree(profile, kind).total == {shown: 96_800}


def test_a_function_goes_on_behind_a_range_that_ends_in_it(tmp_path: Path) -> None:
    profile = imported(
        tmp_path,
        [
            span("python_function", "train.py(1): <module>", 0, 300),
            span("user_annotation", "warm", 10, 100),
            span("python_function", "train.py(20): loop", 20, 200),
            span("cpu_op", "aten::mm", 30, 10),
            span("cpu_op", "aten::add", 150, 10),
        ],
    )
    assert above(profile, "aten::mm") == ["main", "<module>", "warm", "loop", "aten::mm"]
    assert above(profile, "aten::add") == ["main", "<module>", "loop", "aten::add"]
    assert said.of_tree(profile, FrameKind.REGION).total == {"warm": 100_000}


def test_ranges_that_overlap_last_as_long_as_they_say_and_no_time_counts_twice(tmp_path: Path) -> None:
    profile = imported(
        tmp_path,
        [
            span("user_annotation", "a", 0, 100),
            span("user_annotation", "b", 50, 100),
            span("cpu_op", "aten::mm", 60, 20),
            span("cpu_op", "aten::add", 120, 10),
        ],
    )
    assert said.of_tree(profile, FrameKind.REGION).total == {"a": 100_000, "b": 100_000}
    assert sum(said.of_own_time(profile).values()) == 150_000
    assert said.of_own_time(profile) == {"a": 50_000, "b": 70_000, "aten::mm": 20_000, "aten::add": 10_000}


# ---------------------------------------------------------------- launches whose numbers repeat


def program(pid: int, device: int, begin: float = 0.0, number: int = 1, launched: bool = True) -> list[dict[str, Any]]:
    call = span("cuda_runtime", "cudaLaunchKernel", begin + 5, 5, pid, pid, correlation=number)
    return [
        span("cpu_op", f"aten::rank{device}", begin, 50, pid, pid),
        *([call] if launched else []),
        span("kernel", f"kernel{device}", begin + 60, 100, 7, device, device=device, stream=7, correlation=number),
    ]


@pytest.mark.parametrize("late", [0.0, 3.0, 40.0])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_work_stands_below_the_launch_of_its_own_process(tmp_path: Path, late: float, ranks: int) -> None:
    events = [event for rank in range(ranks) for event in program(100 + rank, rank, late * rank)]
    for order in (events, events[::-1], sorted(events, key=lambda one: one["ts"])):
        found, lost = said.launched(imported(tmp_path, order))
        assert found == Counter({(f"kernel{rank}", f"aten::rank{rank}"): 1 for rank in range(ranks)})
        assert lost == 0


def test_a_counter_that_came_again_is_no_launch_of_what_was_before(tmp_path: Path) -> None:
    profile = imported(tmp_path, [*program(9, 0, 0, launched=False), *program(9, 1, 1000), *program(9, 2, 2000)])
    found, lost = said.launched(profile)
    assert found == Counter({("kernel1", "aten::rank1"): 1, ("kernel2", "aten::rank2"): 1})
    assert lost == 1
    assert [loss[:2] for loss in losses(profile)] == [("gpu_record_unattributed", 1)]


def test_one_number_for_all_copies(tmp_path: Path) -> None:
    events = [event for place in range(4) for event in program(9, 0, 1000.0 * place, 7)]
    found, lost = said.launched(imported(tmp_path, events))
    assert (found, lost) == (Counter({("kernel0", "aten::rank0"): 4}), 0)


def test_a_device_whose_clock_is_behind_keeps_its_launches(tmp_path: Path) -> None:
    events = []
    for place in range(4):
        made = program(9, 0, 1000.0 * place, place + 1)
        made[-1]["ts"] -= 500
        events += made
    found, lost = said.launched(imported(tmp_path, events))
    assert (found, lost) == (Counter({("kernel0", "aten::rank0"): 4}), 0)


@pytest.mark.parametrize("field", ["device", "stream", "correlation", "bytes"])
@pytest.mark.parametrize("value", [2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1, 94382190411776, "0x7f00", "N/A", None])
def test_a_number_that_does_not_fit_costs_no_work(tmp_path: Path, field: str, value: Any) -> None:
    kernel = span("gpu_memcpy", "Memcpy HtoD", 60, 100, 7, 0, device=0, stream=7, correlation=1, bytes=8)
    kernel["args"][field] = value
    events = [span("cuda_runtime", "cudaMemcpyAsync", 5, 5, correlation=value if field == "correlation" else 1), kernel]
    profile = imported(tmp_path, events)
    assert sum(said.of_device(profile).total.values()) == 100_000
    assert said.launched(profile)[1] == 0  # what has no number at all is matched by order


# ---------------------------------------------------------------- damage


def test_a_gzip_without_its_trailer_is_read_whole(tmp_path: Path) -> None:
    events = [span("cpu_op", f"aten::op{number % 7}", number, 0.5) for number in range(20_000)]
    data = gzip.compress(json.dumps({"traceEvents": events}).encode())
    for cut in (8, 4, 1):
        (tmp_path / "trace.json.gz").write_bytes(data[:-cut])
        profile = import_traces([tmp_path / "trace.json.gz"])
        assert said.of_events(profile, EventKind.OPERATOR).count.total() == 20_000
        assert "could be unpacked" in losses(profile)[0][2]


def test_a_cut_gzip_gives_what_zcat_gives(tmp_path: Path) -> None:
    events = [span("cpu_op", f"aten::op{number * 7919 % 1000}", number, 0.5) for number in range(5_000)]
    data = gzip.compress(json.dumps({"traceEvents": events}).encode())
    (tmp_path / "trace.json.gz").write_bytes(data[: len(data) // 2])
    found = said.of_events(import_traces([tmp_path / "trace.json.gz"]), EventKind.OPERATOR).count.total()
    assert found > 2_000


def test_a_loss_says_how_many_events_and_how_much_time(tmp_path: Path) -> None:
    good, bad = (json.dumps(span("cpu_op", name, ts, 4000)) for name, ts in (("a", 0), ("b", 5000)))
    text = f'{{"traceEvents": [{good}, {bad.replace(chr(34) + "pid", "oops " + chr(34) + "pid")}, {good}]}}'
    (loss,) = [one for one in losses(imported(tmp_path, text)) if "left out" in one[2]]
    assert loss == ("trace_events_unread", 1, "1 event is damaged and left out (4 ms in all)")


def test_a_header_with_a_control_character_keeps_rank_and_device(tmp_path: Path) -> None:
    header = '{"host_name": "a\x01b", "distributedInfo": {"rank": "1", "world_size": "4"}, "broken": N/A, '
    profile = imported(tmp_path, header + '"traceEvents": [' + json.dumps(span("cpu_op", "aten::mm", 0, 7)) + "]}")
    assert profile.processes[0].rank == 1


def test_backslashes_of_windows_that_are_not_escaped(tmp_path: Path) -> None:
    text = json.dumps(span("python_function", "@(12): forward", 0, 9)).replace("@", "proj\\train\\new\\user.py")
    profile = imported(tmp_path, '{"traceEvents": [' + text + "," + json.dumps(span("cpu_op", "aten::mm", 2, 5)) + "]}")
    files = {profile.tree.text("file", row) for row in range(len(profile.tree.frames["kind"]))}
    assert "proj/train/new/user.py" in files


def test_what_torchs_list_of_events_exports_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        for _ in range(3):
            torch.mm(torch.ones(8, 8), torch.ones(8, 8)).relu_()
    recorded.events().export_chrome_trace(str(tmp_path / "events.json"))
    found = said.of_events(import_traces([tmp_path / "events.json"]), EventKind.OPERATOR).count
    assert found == Counter({one.key: one.count for one in recorded.key_averages() if one.key.startswith("aten::")})


# ---------------------------------------------------------------- whose code it is, and whose forward


@pytest.mark.parametrize("file", ["profile.py", "trace.py", "code/train.py", "queue.py", "test/run.py", "json.py"])
def test_a_file_of_the_user_is_the_users_whatever_its_name(tmp_path: Path, file: str) -> None:
    profile = imported(
        tmp_path,
        [
            span("python_function", f"{file}(12): my_step", 0, 90),
            span("python_function", "threading.py(1016): _bootstrap", 0, 95, 8),
        ],
    )
    files = {profile.tree.text("file", row) for row in range(len(profile.tree.frames["kind"]))}
    assert file in files and "lib/python3/threading.py" in files


def test_equal_numbers_of_two_threads_are_told_apart(tmp_path: Path) -> None:
    events = []
    for step in range(3):
        for thread, name in ((1, "Conv"), (2, "Mm")):
            at = 1000.0 * step + 100 * thread
            events.append(
                span("cpu_op", f"aten::{name.lower()}", at, 50, thread, **{"Sequence number": step, "Fwd thread id": 0})
            )
            events.append(
                span(
                    "cpu_op", f"{name}Backward0", at + 400, 50, 3, **{"Sequence number": step, "Fwd thread id": thread}
                )
            )
    profile = imported(tmp_path, events)
    assert above(profile, "ConvBackward0")[-3:] == ["aten::conv", "backward", "ConvBackward0"]
    assert above(profile, "MmBackward0")[-3:] == ["aten::mm", "backward", "MmBackward0"]


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize("name", ["damaged/min.json", "damaged/min_stream.json", "repeated-ids/two_ranks.json"])
def test_shared_cases_lose_no_device_work(name: str) -> None:
    events = json.loads((CASES / name).read_text(encoding="utf-8").replace("N/A", "null"))["traceEvents"]
    expected = sum(round(1000 * event["dur"]) for event in events if event["cat"] == "kernel")
    profile = import_traces([CASES / name])
    assert sum(said.of_device(profile).total.values()) == expected
    assert LossKind.EVENTS_DROPPED not in {loss.kind for loss in profile.losses}


# ---------------------------------------------------------------- what is no trace of torch's


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("perfetto_trace.json", '{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1}]}', "give host.xplane.pb of"),
        ("viz.json", '{"traceEvents": [{"ph": "X", "cat": "FEE", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 2}], "viztracer_metadata": {}}', "VizTracer"),
        ("tool.json", '[{"ph": "B", "name": "f", "pid": 1, "tid": 1, "ts": 1}]', "another tool"),
        ("empty.json", '{"traceEvents": []}', "record it with torch.profiler"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_the_file_is(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / "host.xplane.pb").write_bytes(b"")
    with pytest.raises(TraceError, match=said) as told:
        imported(tmp_path, text, name)
    assert name in str(told.value)


@pytest.mark.parametrize("value", [2**31, 2**40, -2, "x", None, [1], 1e300])
def test_a_rank_that_no_job_has_is_none(tmp_path: Path, value: Any) -> None:
    events = json.dumps([span("cpu_op", "aten::mm", 0, 10)])
    for key in ("rank", "world_size"):
        header = json.dumps({"rank": 0, "world_size": 2, key: value})
        profile = imported(tmp_path, f'{{"distributedInfo": {header}, "traceEvents": {events}}}')
        assert profile.processes[0].rank == (-1 if key == "rank" else 0)
