"""Recordings of trace-cmd, made with its own writer and compared with what `trace-cmd report -t` printed of them."""

from __future__ import annotations

import gzip
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.main import main
from leadline.profiles.builder import ProfileBuilder, synthetic_meta
from leadline.profiles.profile import Profile
from leadline.schema import FrameKind, KernelEventKind
from leadline.trace.importers import import_traces, trace_dat
from leadline.trace.kernel.dat import read_dat
from leadline.trace.kernel.foreign import KernelRecording, joined
from leadline.trace.kernel.window import states_of
from leadline.trace.source import sources
from leadline.trace.tables import TraceError

RECORDED = Path(__file__).parent / "recorded"
LINE = re.compile(r"-(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}): (\w+): +(.*)$")
KINDS = {
    "sched_switch": KernelEventKind.SWITCH,
    "sched_waking": KernelEventKind.WAKING,
    "sched_process_fork": KernelEventKind.FORK,
    "sched_process_exec": KernelEventKind.EXEC,
    "sched_process_exit": KernelEventKind.EXIT,
}


def unpacked(name: str) -> bytes:
    return gzip.decompress((RECORDED / f"trace-cmd.{name}.gz").read_bytes())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "trace.dat"
    path.write_bytes(unpacked("v6.dat"))
    return path


def recording(path: Path) -> KernelRecording:
    return trace_dat.recording(sources(path)[0])


def their_words() -> list[tuple[int, int, int, KernelEventKind, int]]:
    """(time, CPU, thread, kind, other thread) of every event, as trace-cmd printed them."""
    found = []
    for line in unpacked("report.txt").decode().splitlines():
        one = LINE.search(line)
        assert one, line
        kind = KINDS[one[5]]
        other = re.search(
            {0: r"next_pid=(\d+)", 1: r" pid=(\d+)", 2: r"child_pid=(\d+)"}.get(int(kind), r"$()"), one[6]
        )
        found.append((int(one[3]) * 10**9 + int(one[4]), int(one[2]), int(one[1]), kind, int(other[1] or -1)))
    return found


def our_words(events: dict) -> list[tuple[int, int, int, KernelEventKind, int]]:
    kinds = [KernelEventKind(kind) for kind in events["kind"].tolist()]
    columns = (events[name].tolist() for name in ("time_ns", "cpu", "tid"))
    return list(zip(*columns, kinds, events["target"].tolist(), strict=True))


def test_every_event_is_the_one_that_trace_cmd_prints(recorded: Path) -> None:
    found = our_words(recording(recorded).events)
    # a waking in an interrupt is on behalf of nobody, where trace-cmd names who was interrupted
    theirs = [
        (*row[:2], -1 if ours[2] == -1 else row[2], *row[3:]) for ours, row in zip(found, their_words(), strict=True)
    ]
    assert found == theirs
    assert len(found) == 40


def test_version_7_and_packed_says_the_same(recorded: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.dat"
    plain.write_bytes(unpacked("v7.dat"))
    assert our_words(recording(plain).events) == our_words(recording(recorded).events)
    packed = tmp_path / "packed.dat"
    packed.write_bytes(unpacked("v7z.dat"))
    if importlib.util.find_spec("zstandard") is None and importlib.util.find_spec("compression") is None:
        with pytest.raises(
            TraceError, match="packed with zstd, which this Python cannot read; `pip install zstandard`"
        ):
            recording(packed)
        return
    assert our_words(recording(packed).events) == our_words(recording(recorded).events)


def test_a_machine_has_its_threads_and_what_they_waited_for(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", str(recorded)]) == 0
    shown = capsys.readouterr().out
    assert "events of trace-cmd" in shown
    assert re.search(r"sleep \d+ .*\n\s+running .*blocked", shown)
    profile = import_traces([recorded])
    for thread in profile.threads:
        assert 0 < thread.cpu_ns <= thread.wall_ns or thread.cpu_ns == 0
    states = states_of(profile, every=True)
    assert {thread.tid for thread in profile.threads} == set(states.tid.tolist())


def test_a_file_that_is_cut_anywhere_is_read_or_refused_in_a_sentence(tmp_path: Path) -> None:
    for name in ("v6.dat", "v7.dat", "v7z.dat"):
        whole = unpacked(name)
        for length in [*range(0, len(whole), 997), len(whole) - 1]:
            path = tmp_path / "cut.dat"
            path.write_bytes(whole[:length])
            try:
                profile = import_traces([path])
            except TraceError as error:
                assert str(error)[-1] not in ".!" and "\n" not in str(error)
                continue
            told = " ".join(profile.meta["kernel"]["sentences"])
            whole_events = len(profile.table("kernel_events")["time_ns"]) == 40
            assert whole_events or "missing at its end" in told, length


def test_what_is_damaged_is_refused_in_a_sentence(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    for name in ("v6.dat", "v7.dat", "v7z.dat"):
        whole = unpacked(name)
        for _ in range(30):
            data = bytearray(whole)
            for at in random.integers(0, min(len(data), 9000), 6):
                data[at] = random.integers(256)
            path = tmp_path / "damaged.dat"
            path.write_bytes(data)
            try:
                import_traces([path])
            except TraceError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((b"tracing6\0", b"tracing8\0"), "version 8"),
        ((b"tracing6\0\0", b"tracing6\0\1"), "big-endian"),
        ((b"local_t commit;\toffset:8;\tsize:8;", b"local_t commit;\toffset:8;\tsize:4;"), "32-bit kernel"),
        ((b"flyrecord\0", b"latency  \0"), "no pages of events"),
    ],
)
def test_what_is_not_read_is_named(recorded: Path, change: tuple[bytes, bytes], sentence: str) -> None:
    data = recorded.read_bytes()
    assert change[0] in data
    recorded.write_bytes(data.replace(*change))
    with pytest.raises(TraceError, match=sentence):
        import_traces([recorded])


# ---------------------------------------------------------------------- beside a profile


def program(begin_ns: int, end_ns: int, tid: int, *, boot: str = "") -> Profile:
    """A process whose one thread had an operator open all the time, on CLOCK_MONOTONIC."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=tid, start_ns=10**18)
    thread = builder.thread(process, "main", tid=tid)
    node = builder.child(builder.node_of_thread(thread), builder.frame(FrameKind.OPERATOR, "aten::mm"))
    builder.event("operator", node, begin_ns, end_ns - begin_ns, thread=thread)
    meta = synthetic_meta()
    meta["processes"] = [
        {"pid": tid, "started_at_ns": 10**18, "boot_id": boot, "clock": {"monotonic_ns": 1, "realtime_ns": 10**18}}
    ]
    return builder.profile(meta)


def test_beside_a_profile_it_says_what_the_threads_did(recorded: Path) -> None:
    kernel = replace(recording(recorded), clock="monotonic")
    begin, end = kernel.span_ns
    sleeper = next(row[4] for row in our_words(kernel.events) if row[3] == KernelEventKind.FORK)
    both = joined(program(begin, end, sleeper), kernel)
    states = states_of(both)
    assert set(states.tid.tolist()) == {sleeper}
    assert int(states.duration_ns.sum()) <= end - begin
    assert {"running", "blocked"} <= set(states.columns()["state"].tolist())


def test_clocks_that_are_not_related_are_refused(recorded: Path) -> None:
    kernel = recording(recorded)
    begin, end = kernel.span_ns
    with pytest.raises(TraceError, match="recorded on the clock local, whose relation"):
        joined(program(begin, end, 7), kernel)
    monotonic = replace(kernel, clock="monotonic")
    with pytest.raises(TraceError, match="shares no time with the profile's window"):
        joined(program(begin + 10**12, end + 10**12, 7), monotonic)
    with pytest.raises(TraceError, match="of another machine, or of another start of it"):
        joined(program(begin, end, 7, boot="one"), replace(monotonic, boot_id="two"))
    with pytest.raises(TraceError, match="would count twice"):
        joined(joined(program(begin, end, 7), monotonic), monotonic)


def test_two_recordings_without_a_profile_are_refused(recorded: Path) -> None:
    with pytest.raises(TraceError, match="give one of them, or a profile that it belongs to"):
        import_traces([recorded, recorded])


def test_the_container_says_what_its_header_says(recorded: Path) -> None:
    found = read_dat(recorded)
    assert found.clock == "local" and found.machine == "x86_64" and found.page_bytes == 4096
    assert "sched/sched_switch" in found.formats and set(found.buffers[0]) == {0, 1}
