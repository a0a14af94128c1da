"""Reading Kineto traces: three generations of the format, every container, and files that are not what they should be."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from leadline.steps.of_events import find_steps
from leadline.trace import jsonstream
from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.tables import Kind, Trace, TraceError

HERE = Path(__file__).parent


def span(cat: str, name: str, ts: float, dur: float, pid: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def modern() -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU", "totalGlobalMem": 1000, "computeMajor": 9, "computeMinor": 0, "numSms": 4}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "traceEvents": [
            span("user_annotation", "ProfilerStep#5", 10.0, 90.0),
            span("cpu_op", "aten::mm", 20.125, 30.0, **{"Sequence number": 4, "Fwd thread id": 0, "Input Dims": [[2, 2]]}),
            span("cuda_runtime", "cudaLaunchKernel", 25.0, 5.0, correlation=77, cbid=211),
            span("kernel", "gemm", 33.0, 12.0, pid=0, tid=7, correlation=77, device=0, stream=7, grid=[1, 1, 1]),
            span("cuda_sync", "Stream Sync", 60.0, 1.0, pid=0, tid=1000007, correlation=78, cuda_sync_kind="Stream Sync", stream=7, device=0),
            span("cuda_runtime", "cudaStreamSynchronize", 60.0, 10.0, correlation=78),
            {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 21.0, "cat": "fwdbwd", "name": "fwdbwd"},
            {"ph": "f", "id": 1, "pid": 1, "tid": 2, "ts": 80.0, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": "main"}},
        ],
        "traceName": "x.json",
        "baseTimeNanoseconds": 5_000_000_000,
    }  # fmt: skip


def write(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path: Path) -> Trace:
    (source,) = sources(path)
    return read_kineto(source)


def named(trace: Trace, name: str) -> int:
    (row,) = [row for row in range(len(trace)) if trace.name(row) == name]
    return row


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_today(tmp_path: Path, suffix: str) -> None:
    trace = read(write(tmp_path / f"trace{suffix}", modern()))
    assert (trace.rank, trace.world_size, trace.complete, trace.warnings) == (3, 8, True, ())
    assert trace.origin_ns == 5_000_010_000
    assert trace.devices[0].compute_capability == "9.0"
    operator, kernel = named(trace, "aten::mm"), named(trace, "gemm")
    assert trace.events["start_ns"][operator] == 10_125
    assert trace.events["duration_ns"][kernel] == 12_000
    assert trace.events["correlation"][kernel] == trace.events["correlation"][named(trace, "cudaLaunchKernel")] == 77
    assert trace.details[trace.events["detail"][operator]]["Input Dims"] == [[2, 2]]
    synchronise = named(trace, "cudaStreamSynchronize")
    assert trace.events["kind"][synchronise] == Kind.SYNCHRONIZE
    assert trace.events["awaits"][synchronise] == 7  # the record sits on a thread that does not exist
    assert trace.threads[trace.events["thread"][operator]].name == "main"
    (flow,) = trace.flows
    assert (flow.forward_ns, flow.backward_ns) == (11_000, 70_000)


def test_the_generation_before_torch_1_13(tmp_path: Path) -> None:
    events = [
        span("Operator", "aten::mm", 1_600_000_000_000_000, 30, pid="123", tid="456", **{"External id": 9}),
        span("Runtime", "cudaLaunchKernel", 1_600_000_000_000_005, 3, pid="123", tid="456", correlation=9),
        span("Kernel", "gemm", 1_600_000_000_000_020, 7, pid="0", tid="stream 7", correlation=9, device=0, stream=7),
        {"ph": "s", "id": 9, "pid": "123", "tid": "456", "ts": 1_600_000_000_000_005, "cat": "async", "name": "launch"},
    ]
    trace = read(write(tmp_path / "old.json", {"traceEvents": events}))
    assert [Kind(kind) for kind in trace.events["kind"]] == [Kind.OPERATOR, Kind.API, Kind.KERNEL]
    assert trace.events["start_ns"].tolist() == [0, 5_000, 20_000]
    assert trace.events["stream"][named(trace, "gemm")] == 7
    assert trace.threads[0].tid == 456


def test_rocm(tmp_path: Path) -> None:
    events = [
        span("cuda_runtime", "hipLaunchKernel", 1, 2, correlation=5),
        span("kernel", "gemm", 9, 3, pid=2, tid=0, correlation=5, device=2, stream=0),
        span("cuda_runtime", "hipStreamWaitEvent", 4, 1, correlation=6),
        span("cuda_runtime", "hipDeviceSynchronize", 6, 8, correlation=7),
    ]
    trace = read(write(tmp_path / "rocm.json", {"traceEvents": events}))
    assert trace.events["kind"][named(trace, "hipStreamWaitEvent")] == Kind.STREAM_WAIT
    assert trace.events["kind"][named(trace, "hipDeviceSynchronize")] == Kind.SYNCHRONIZE
    assert trace.events["device"][named(trace, "gemm")] == 2


def test_ranks_in_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "ranks.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for rank in (1, 0):
            content = modern()
            content["distributedInfo"]["rank"] = rank
            data = gzip.compress(json.dumps(content).encode())
            member = tarfile.TarInfo(f"job/rank{rank}.json.gz")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        archive.addfile(tarfile.TarInfo("job/readme.txt"), io.BytesIO(b""))
    assert [read_kineto(source).rank for source in sources(path)] == [0, 1]


def test_a_file_that_ends_in_the_middle(tmp_path: Path) -> None:
    text = json.dumps(modern(), indent=1)
    trace = read(write(tmp_path / "cut.json", text[: text.index('"cuda_sync"')]))
    assert not trace.complete
    assert any("ends inside the list" in text for text in trace.warnings)
    assert named(trace, "gemm") >= 0


def test_a_gzip_that_ends_in_the_middle(tmp_path: Path) -> None:
    content = modern()
    content["traceEvents"] *= 4000
    path = tmp_path / "cut.json.gz"
    data = gzip.compress(os.urandom(0) + json.dumps(content).encode(), compresslevel=1)
    path.write_bytes(data[: len(data) // 2])
    trace = read(path)
    assert not trace.complete and len(trace) > 1000


def test_damage_in_the_middle_costs_only_what_is_damaged(tmp_path: Path) -> None:
    text = json.dumps(modern(), indent=1).replace('"name": "gemm",', '"name": "gemm" "oops",')
    text = text.replace('{\n   "ph"', '{"ph"')
    trace = read(write(tmp_path / "damaged.json", text))
    assert not trace.complete
    assert named(trace, "aten::mm") >= 0 and named(trace, "cudaStreamSynchronize") >= 0
    assert "gemm" not in trace.strings


def test_borders_inside_texts_and_lists_do_not_cut_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonstream, "PIECE_BYTES", 97)
    tricky = [
        span("cpu_op", f"op{number}", number, 0.5, **{"Input Dims": [{"a": 1}, {"b": '}, {"ph"'}], "note": "},{" * 9})
        for number in range(50)
    ]
    trace = read(write(tmp_path / "tricky.json", {"traceEvents": tricky}))
    assert trace.complete and [trace.name(row) for row in range(len(trace))] == [f"op{number}" for number in range(50)]


def test_numbers_that_are_no_json(tmp_path: Path) -> None:
    content = modern()
    content["traceEvents"][3]["args"]["est. achieved occupancy %"] = float("nan")
    trace = read(write(tmp_path / "nan.json", content))
    assert trace.complete and named(trace, "gemm") >= 0


def test_events_without_what_they_need_are_counted(tmp_path: Path) -> None:
    content = modern()
    content["traceEvents"] += [{"ph": "X", "cat": "cpu_op", "name": "no time"}, {"cat": "cpu_op"}, 17]
    trace = read(write(tmp_path / "holes.json", content))
    assert any("3 events are without a field" in text for text in trace.warnings)


def test_negative_durations_count_as_nothing(tmp_path: Path) -> None:
    content = modern()
    content["traceEvents"].append(span("cpu_op", "backwards", 50, -5))
    trace = read(write(tmp_path / "negative.json", content))
    assert trace.events["duration_ns"][named(trace, "backwards")] == 0
    assert any("negative duration" in text for text in trace.warnings)


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    content = modern()
    content["traceEvents"].append(span("kernel", "from another clock", 9e15, 5, stream=7, device=0, correlation=77))
    trace = read(write(tmp_path / "jump.json", content))
    assert any("clock jump" in text for text in trace.warnings)
    assert int(trace.end_ns.max()) < 1_000_000


def test_a_file_that_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no traceEvents array in other\.json"):
        read(write(tmp_path / "other.json", {"hello": "world"}))
    with pytest.raises(TraceError, match="no operator, API call or kernel"):
        read(write(tmp_path / "empty.json", {"traceEvents": []}))
    with pytest.raises(TraceError, match="does not exist"):
        sources(tmp_path / "missing.json")
    folder = tmp_path / "ranks"
    folder.mkdir()
    with pytest.raises(TraceError, match=r"ranks holds no \.json"):
        sources(folder)
    (folder / "all.tar.gz").touch()
    with pytest.raises(TraceError, match=r"give one of them: all\.tar\.gz"):
        sources(folder)


def test_steps_by_profiler_optimizer_and_repetition(tmp_path: Path) -> None:
    def steps(events: list[dict[str, Any]]) -> tuple[str, list[tuple[int, int, int]]]:
        found = find_steps(read(write(tmp_path / "steps.json", {"traceEvents": events})))
        return found.found_by, [(step.number, step.start_ns, step.end_ns) for step in found.steps]

    body = [
        span("cpu_op", name, 100 * step + at, 5) for step in range(3) for at, name in ((10, "a"), (30, "b"), (60, "c"))
    ]
    assert steps(body) == ("repetition", [(0, 0, 100_000), (1, 100_000, 200_000), (2, 200_000, 255_001)])
    updates = [span("user_annotation", "Optimizer.step#SGD.step", 100 * step + 70, 10) for step in range(3)]
    assert steps(body + updates) == ("optimizer", [(0, 0, 70_000), (1, 70_000, 170_000), (2, 170_000, 270_000)])
    marks = [span("user_annotation", f"ProfilerStep#{step + 8}", 100 * step + 5, 80) for step in range(3)]
    assert steps(body + updates + marks) == (
        "profiler",
        [(8, 0, 100_000), (9, 100_000, 200_000), (10, 200_000, 280_000)],
    )


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_memory_is_bounded_by_the_window(tmp_path: Path, suffix: str) -> None:
    from long_trace import write as write_long

    path = tmp_path / f"long{suffix}"
    write_long(path, steps=60, operators=600)  # 38 MB of JSON text, 108,000 events
    found = loaded(path, "40", large_bytes=1_000_000)
    assert found["steps"] == [40]
    assert 600 * 3 <= found["events"] < 600 * 3 * 5
    assert found["after"] - found["before"] < 40 * 1024  # KiB; reading everything takes more than 100 MiB


def test_a_large_trace_without_marks_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from long_trace import write as write_long

    from leadline.trace import window

    path = tmp_path / "long.json"
    write_long(path, steps=20, operators=100, marks=False)
    monkeypatch.setattr(window, "MAX_EVENTS", 1_500)
    trace, steps = window.read_window(sources(path)[0], None, large_bytes=1_000)
    assert 1_000 < len(trace) < 2_000
    assert any("no step marks" in text for text in trace.warnings)
    assert steps.found_by == "repetition"


@pytest.mark.slow
def test_a_gigabyte(tmp_path: Path) -> None:
    from long_trace import write as write_long

    path = tmp_path / "huge.json"
    write_long(path, steps=120, operators=8_000, pad=300)
    assert path.stat().st_size > 1_000_000_000
    found = loaded(path, "100", large_bytes=256 << 20)
    assert found["steps"] == [100]
    assert found["after"] - found["before"] < 300 * 1024


def loaded(path: Path, step: str, *, large_bytes: int) -> dict[str, Any]:
    """Loads one step in a process of its own and returns what that took."""
    command = [sys.executable, str(HERE / "long_trace.py"), str(path), step, str(large_bytes)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    found: dict[str, Any] = json.loads(result.stdout)
    return found
