"""CTF traces by LTTng and perf, and our own export read back: nothing may be lost between."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.main import main
from leadline.convert import EXPORTERS, Request, What, write
from leadline.convert.sinks import FolderSink
from leadline.profiles import Profile, write_profile
from leadline.profiles.builder import ProfileBuilder, synthetic_meta
from leadline.profiles.tables import Tables, empty_columns
from leadline.schema import EventKind, FrameKind, KernelEventKind
from leadline.trace.ctf import open_ctf
from leadline.trace.importers import ctf, import_traces
from leadline.trace.kernel.window import states_of
from leadline.trace.source import sources
from leadline.trace.tables import TraceError

RECORDED = Path(__file__).parent / "recorded" / "ctf.tar.gz"
BOOT = "0f2f7b4e-7a3a-4b0e-9a52-6f1d2c3b4a59"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`lttng-calls`: a C program of three calls that call two each; `perf-sleep`: /bin/sleep 0.02."""
    if shutil.which("babeltrace2") is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")
    folder = tmp_path_factory.mktemp("ctf")
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # from 3.11.4 on
    return folder


def write_ctf(profile: Profile, folder: Path) -> Path:
    with FolderSink(folder) as sink:
        write(profile, next(one for one in EXPORTERS if one.name == "ctf"), Request(What.WINDOW), sink)
    return folder


def window(rows: list[tuple[str, int, int]], *, lost: int = 0) -> Profile:
    """(name, begin, duration) as operators of one thread."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, start_ns=10**18)
    thread = builder.thread(process, "main", tid=100)
    for name, begin, duration in rows:
        node = builder.child(builder.node_of_thread(thread), builder.frame(FrameKind.OPERATOR, name))
        builder.event("operator", node, begin, duration, thread=thread)
    if lost:
        builder.loss(process, "events_dropped", lost)
    meta = synthetic_meta()
    clock = {"monotonic_ns": 0, "realtime_ns": 10**18}
    meta["processes"] = [{"pid": 100, "started_at_ns": 10**18, "boot_id": BOOT, "clock": clock}]
    return builder.profile(meta)


def names(profile: Profile, rows) -> list[str]:
    return [profile.tree.text("name", int(profile.tree.frame_of[node])) for node in profile.events["node"][rows]]


def test_calls_that_lttng_recorded_nest_as_the_program_called(recorded: Path) -> None:
    profile = import_traces([recorded / "lttng-calls"])
    rows = np.flatnonzero(profile.events["kind"] == EventKind.REGION)
    called = names(profile, rows)
    assert [called.count(name) for name in ("calls+0x11d3", "calls+0x1196", "calls+0x1159")] == [1, 3, 6]
    inner = rows[[name == "calls+0x1159" for name in called]]
    assert (profile.events["duration_ns"][inner] >= 2_000_000).all(), "each sleeps for 2 ms"
    node = profile.tree.parent[profile.events["node"][inner[0]]]
    assert profile.tree.text("name", int(profile.tree.frame_of[node])) == "calls+0x1196"


def test_what_perf_wrote_is_what_babeltrace2_counts(recorded: Path) -> None:
    shown = subprocess.run(
        ["babeltrace2", str(recorded / "perf-sleep")], capture_output=True, text=True, check=True, timeout=60
    )
    kernel = ctf.recording(sources(recorded / "perf-sleep")[0])
    kinds = kernel.events["kind"]
    for name, kind in (("sched_switch", "SWITCH"), ("sys_enter", "SYSCALL_ENTRY"), ("sys_exit", "SYSCALL_EXIT")):
        assert int((kinds == KernelEventKind[kind]).sum()) == shown.stdout.count(f":{name}:") > 0
    profile = import_traces([recorded / "perf-sleep"])
    states = states_of(profile, every=True)
    slept = (states.columns()["state"] == "blocked") & (states.reason == "clock_nanosleep")
    assert 20e6 < states.duration_ns[slept].sum() < 60e6


# ---------------------------------------------------------------------- our own export


def with_kernel() -> Profile:
    """A thread that runs, is sent off its CPU, waits in a call, and runs again."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=70, start_ns=10**18)
    thread = builder.thread(process, "main", tid=71)
    node = builder.child(builder.node_of_thread(thread), builder.frame(FrameKind.OPERATOR, "aten::mm"))
    inner = builder.child(node, builder.frame(FrameKind.OPERATOR, 'aten::"odd" }, { name'))
    builder.event("operator", node, 1_000, 9_000, thread=thread, sequence=5)
    builder.event("operator", inner, 2_000, 3_000, thread=thread)
    say = builder.kernel_event
    say("switch", 900, "main", tid=0, target=71, cpu=1, value=0)
    say("syscall_entry", 3_000, "futex", tid=71, cpu=1)
    say("switch", 3_100, "other", tid=71, target=72, cpu=1, value=1)
    say("waking", 4_000, "main", tid=72, target=71, cpu=1, value=1)
    say("switch", 4_500, "main", tid=72, target=71, cpu=1, value=0)
    say("syscall_exit", 4_600, "futex", tid=71, cpu=1, value=0)
    meta = synthetic_meta()
    meta["kernel"] = {
        "source": "tracefs",
        "level": "syscalls",
        "from_ns": 900,
        "until_ns": 10_000,
        "lost": 0,
        "sentences": [],
    }
    meta["processes"] = [
        {"pid": 70, "started_at_ns": 10**18, "boot_id": BOOT, "clock": {"monotonic_ns": 0, "realtime_ns": 10**18}}
    ]
    return builder.profile(meta)


def stripped(profile: Profile) -> Profile:
    tables = {**profile.tables.columns, "kernel_events": empty_columns("kernel_events")}
    return Profile(Tables(tables), {name: value for name, value in profile.meta.items() if name != "kernel"})


def kernel_rows(profile: Profile, *, move: int = 0) -> list[tuple]:
    events = profile.table("kernel_events")
    texts = [profile.tables.strings[int(row)] for row in events["name"]]
    columns = (events[name].tolist() for name in ("cpu", "kind", "tid", "target", "value"))
    return list(zip((events["time_ns"] - move).tolist(), *columns, texts, strict=True))


def test_the_kernels_part_comes_back_beside_the_profile(recorded: Path, tmp_path: Path) -> None:
    profile = with_kernel()
    folder = write_ctf(profile, tmp_path / "out")
    write_profile(tmp_path / "without.leadline", stripped(profile))
    both = import_traces([tmp_path / "without.leadline", folder / "kernel"])
    assert kernel_rows(both) == kernel_rows(profile)
    ours, theirs = states_of(profile), states_of(both)
    assert ours.columns()["reason"].tolist() == theirs.columns()["reason"].tolist()
    assert "futex" in ours.reason.tolist()


def test_both_parts_come_back_as_one_profile(recorded: Path, tmp_path: Path) -> None:
    profile = with_kernel()
    folder = write_ctf(profile, tmp_path / "out")
    both = import_traces([folder])
    assert names(both, slice(None)) == ["aten::mm", 'aten::"odd" }, { name']
    assert both.events["duration_ns"].tolist() == [9_000, 3_000]
    assert both.events["sequence"].tolist() == [5, -1]
    assert kernel_rows(both, move=int(both.events["start_ns"][0]) - 1_000) == kernel_rows(profile)


def test_a_window_of_random_operators_comes_back(recorded: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = [(f"op{random.integers(4)}", int(begin), int(random.integers(1, 900))) for begin in np.arange(60) * 1_000]
    profile = window(rows)
    found = import_traces([write_ctf(profile, tmp_path / "out") / "ust"])
    assert names(found, slice(None)) == names(profile, slice(None))
    assert found.events["duration_ns"].tolist() == profile.events["duration_ns"].tolist()
    assert np.diff(found.events["start_ns"]).tolist() == np.diff(profile.events["start_ns"]).tolist()


def test_what_was_discarded_is_told(recorded: Path, tmp_path: Path) -> None:
    folder = write_ctf(window([("a", 0, 10), ("b", 20, 10)], lost=4_000), tmp_path / "out")
    profile = import_traces([folder / "ust"])
    assert any("4,000 events" in loss.detail for loss in profile.losses)


# ---------------------------------------------------------------------- bad input


def test_without_the_reader_a_sentence_says_which_program(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(TraceError, match="needs the program babeltrace2"):
        import_traces([recorded / "lttng-calls"])


def test_a_stream_that_ends_early_keeps_what_was_read(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(recorded / "perf-sleep", folder)
    stream = folder / "perf_stream_0"
    stream.write_bytes(stream.read_bytes()[:9_000])
    try:
        profile = import_traces([folder])
    except TraceError as error:
        assert "cannot be read by babeltrace2" in str(error) and "\n" not in str(error)
    else:
        assert "ends early or is damaged" in " ".join(profile.meta["kernel"]["sentences"])


def test_folders_that_are_no_trace_are_refused(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["import", str(tmp_path / "empty"), "-o", str(tmp_path / "out.leadline")]) == 2
    (tmp_path / "text").mkdir()
    (tmp_path / "text/metadata").write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert main(["import", str(tmp_path / "text"), "-o", str(tmp_path / "out.leadline")]) == 2
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/metadata").write_text("/* CTF 1.8 */ trace {", encoding="utf-8")
    assert main(["import", str(tmp_path / "broken"), "-o", str(tmp_path / "out.leadline")]) == 2
    said = capsys.readouterr().err
    assert "cannot be read by babeltrace2" in said and "Traceback" not in said


def test_packed_metadata_that_is_damaged_is_refused(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(recorded / "lttng-calls", folder)
    data = bytearray((folder / "metadata").read_bytes())
    data[24:32] = b"\0" * 8
    (folder / "metadata").write_bytes(data)
    with pytest.raises(TraceError, match="damaged"):
        import_traces([folder])
    assert open_ctf(recorded / "lttng-calls", "x").clock == "monotonic"
