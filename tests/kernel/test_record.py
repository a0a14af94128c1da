"""Recording: programs whose threads wait for a known reason, on every source that a machine may permit."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.kernel.programs import NO_PERF, NO_RIGHTS, WAITS, about, recorded, stretch

from leadline.capture.kernel.mount import tracefs
from leadline.capture.kernel.recording import Refused
from leadline.capture.kernel.tracefs import PREFIX, TracefsRecorder
from leadline.profiles import open_profile
from leadline.schema import KernelEventKind, LossKind
from leadline.trace.kernel.tracefs import decode
from leadline.trace.kernel.window import states_of
from leadline.trace.states import State
from leadline.trace.waits import Spent, ThreadTime

SLEEP = "clock_nanosleep" if sys.version_info >= (3, 11) else "pselect6"
"""The system call of `time.sleep`."""


@pytest.fixture(scope="session")
def instances() -> Path:
    """Where instances of the kernel's tracer lie."""
    try:
        root, _ = tracefs()
    except Refused as error:
        pytest.skip(f"this user may not use the kernel's tracer: {error}")
    return root / "instances"


@pytest.fixture(scope="module")
def waits(instances: Path, tmp_path_factory: pytest.TempPathFactory):
    return recorded(tmp_path_factory.mktemp("waits"), WAITS, "syscalls")[0]


def spent(profile, region: str) -> Spent:
    tid, begin, end = stretch(profile, region)
    return ThreadTime(states_of(profile).of(tid)).spent(np.array([begin]), np.array([end]))


def test_states_cover_every_region(waits) -> None:
    assert about(waits)["source"] == "tracefs"
    assert about(waits)["sentences"] == []
    for region in ("sleeps", "locks", "shares"):
        found = spent(waits, region)
        assert found.unseen_ns <= 0.001 * found.wall_ns


def test_a_sleep_names_its_system_call(waits) -> None:
    cause = spent(waits, "sleeps").causes[0]
    assert cause.call == SLEEP
    assert cause.who == "", "a timer's interrupt woke it, and no thread"
    assert 49e6 < cause.time_ns < 60e6


def test_a_lock_names_the_thread_that_released_it(waits) -> None:
    blocked = [cause for cause in spent(waits, "locks").causes if cause.call == "futex"]
    assert sum(cause.time_ns for cause in blocked) > 45e6
    tid, begin, end = stretch(waits, "locks")
    states = states_of(waits).of(tid)
    inside = (states.start_ns > begin) & (states.end_ns < end) & (states.state == 2) & (states.duration_ns > 40e6)
    wakers = set(states.other[inside].tolist())
    others = {thread.tid for thread in waits.threads} | set(np.unique(waits.table("kernel_events")["target"]).tolist())
    assert wakers
    assert wakers <= others - {tid}


def test_a_hog_on_the_same_core_is_named(waits) -> None:
    found = spent(waits, "shares")
    assert found.runnable_ns >= 0.4 * found.wall_ns
    tid, begin, end = stretch(waits, "shares")
    states = waits.window.states
    inside = (states["tid"] == tid) & (states["start_ns"] >= begin) & (states["start_ns"] < end)
    assert "sh" in set(states["other_name"][inside & (states["state"] == "runnable")].tolist())


def test_nothing_stays_behind(waits, instances: Path) -> None:
    mine = [one.name for one in instances.iterdir() if one.name.startswith(PREFIX)]
    assert not [name for name in mine if f".{os.getpid()}." in name]


def test_the_kernels_own_text_has_the_same_events(instances: Path, tmp_path: Path) -> None:
    recorder = TracefsRecorder("syscalls")
    try:
        recorder.switch.write_text("1", encoding="ascii")
        subprocess.run([sys.executable, "-c", "import json"], check=True, timeout=60)
        recorder.end()
        text = (recorder._instance / "trace").read_text(encoding="utf-8", errors="replace")
        recording = recorder.save(tmp_path)
    finally:
        recorder.remove()
    line = re.compile(r"^.{16}-\d+ +\[(\d+)\].*? +(\d+\.\d+): (\w+)", re.MULTILINE)
    names = {
        "sched_switch": KernelEventKind.SWITCH,
        "sched_waking": KernelEventKind.WAKING,
        "sched_process_fork": KernelEventKind.FORK,
        "sched_process_exit": KernelEventKind.EXIT,
        "sched_process_exec": KernelEventKind.EXEC,
    }
    told = Counter((int(cpu), names[name], time) for cpu, time, name in line.findall(text) if name in names)
    raw = {int(path.stem[3:]): path.read_bytes() for path in tmp_path.glob("*.raw")}
    parts, lost = decode(raw, recording.details["formats"], recording.details["machine"])
    ours: Counter[tuple[int, KernelEventKind, str]] = Counter()
    for part in parts:
        for cpu, kind, time in zip(part["cpu"].tolist(), part["kind"].tolist(), part["time_ns"].tolist(), strict=True):
            if kind in names.values():
                ours[cpu, KernelEventKind(kind), f"{time // 10**9}.{(time + 500) // 1000 % 10**6:06d}"] += 1
    assert lost == recording.lost == 0
    assert sum(told.values()) > 10
    assert sum(told.values()) == sum(ours.values())
    same = sum((told & ours).values())
    assert same >= 0.99 * sum(told.values()), "times differ by rounding at most"


def test_a_small_buffer_is_a_counted_loss(instances: Path, tmp_path: Path) -> None:
    recorder = TracefsRecorder("syscalls", budget_bytes=64 << 10)
    try:
        recorder.switch.write_text("1", encoding="ascii")
        subprocess.run(
            [sys.executable, "-c", "for i in range(5000): open('/dev/null').close()"], check=True, timeout=60
        )
        recorder.end()
        recording = recorder.save(tmp_path)
    finally:
        recorder.remove()
    assert recording.lost > 1000


def test_a_killed_supervisor_leaves_nothing_after_the_next_run(instances: Path, tmp_path: Path) -> None:
    program = "import time\nprint('up', flush=True)\ntime.sleep(60)"
    (tmp_path / "long.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "leadline", "run", "--trace", "seconds=1", "--kernel", "sched", "long.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        left = [one.name for one in instances.iterdir() if f".{started.pid}." in one.name]
        os.killpg(started.pid, signal.SIGKILL)
    assert left, "it was recording"
    recorded(tmp_path, "import leadline", "sched")
    assert not [one for one in instances.iterdir() if one.name in left]


def test_of_a_killed_program_the_kernel_is_read_as_far_as_it_goes(instances: Path, tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(
        "import os, time\nimport leadline\nfor _ in range(50):\n    time.sleep(0.002)\n"
        "print(os.getpid(), flush=True)\ntime.sleep(60)",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "long.leadline"]
    command += ["--trace", "seconds=60,wait=0", "--kernel", "sched", "long.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        assert [one for one in instances.iterdir() if f".{started.pid}." in one.name], "it is recording"
        os.kill(child, signal.SIGKILL)
        assert started.wait(timeout=60) != 0
    assert not [one for one in instances.iterdir() if f".{started.pid}." in one.name]
    profile = open_profile(tmp_path / "long.leadline")
    assert about(profile)["lost"] == 0
    states = states_of(profile, every=True).of(child)
    assert ((states.state == State.BLOCKED) & (states.duration_ns > 1_900_000)).sum() >= 50
    assert child in profile.window.states["tid"]


def test_without_rights_switches_are_recorded_and_the_reason_is_told(tmp_path: Path) -> None:
    found, said = recorded(tmp_path, WAITS, "sched", *NO_RIGHTS)
    assert about(found)["source"] == "perf"
    assert (
        "only context switches of the Linux kernel can be recorded: the kernel's tracer: tracefs is not mounted" in said
    )
    sleeps, shares = spent(found, "sleeps"), spent(found, "shares")
    assert shares.runnable_ns >= 0.3 * shares.wall_ns
    assert sleeps.wall_ns > 0
    assert [loss.kind for loss in found.losses] == [LossKind.KERNEL_UNSEEN]


def test_a_clock_of_its_own_is_related(instances: Path, tmp_path: Path) -> None:
    found, said = recorded(tmp_path, WAITS, "syscalls", "unshare", "--time", "--monotonic", "1000", "--fork")
    assert about(found)["source"] == "tracefs", said
    assert about(found)["sentences"] == []
    for region, call in (("sleeps", SLEEP), ("locks", "futex")):
        seen = spent(found, region)
        assert seen.unseen_ns <= 0.001 * seen.wall_ns
        assert call in {cause.call for cause in seen.causes}


def test_a_mark_gives_the_offset_of_a_time_namespace(instances: Path) -> None:
    program = (
        "import sys; from leadline.capture.kernel import namespaces, tracefs\n"
        "r = tracefs.TracefsRecorder('sched')\n"
        "try: tid, ahead, width = namespaces.mark(r._instance)\n"
        "finally: r.remove()\n"
        "print(ahead - namespaces.monotonic_offset_ns(), width, namespaces.monotonic_offset_ns())"
    )
    command = ["unshare", "--time", "--monotonic", "1000", "--fork", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    apart, width, offset = map(int, done.stdout.split())
    assert offset == 1000 * 10**9
    assert abs(apart) <= width


def test_in_a_container_with_numbers_of_its_own_switches_are_recorded(instances: Path, tmp_path: Path) -> None:
    found, said = recorded(tmp_path, WAITS, "syscalls", "unshare", "--pid", "--fork", "--mount-proc")
    assert about(found)["source"] == "perf"
    assert "its own process ids" in said
    shares = spent(found, "shares")
    assert shares.runnable_ns >= 0.3 * shares.wall_ns


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter that forbids the call is written for x86-64")
def test_where_the_call_is_forbidden_counters_are_read(tmp_path: Path) -> None:
    found, said = recorded(tmp_path, WAITS, "sched", *NO_RIGHTS, sys.executable, "-c", NO_PERF)
    assert about(found)["source"] == "counters"
    assert "only totals per thread of the Linux kernel can be recorded" in said
    assert about(found)["threads"]
    assert len(found.window.states["tid"]) == 0


def test_a_level_needs_a_window(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leadline", "run", "--kernel", "sched", "x.py"]
    (tmp_path / "x.py").touch()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "add --trace steps=5" in done.stderr


def test_without_room_for_temporary_files_the_program_is_profiled_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import leadline", encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "import tempfile, sys; tempfile.tempdir = '/nowhere'; from leadline.cli.main import main; sys.exit(main())",
    ]
    words = ["run", "--trace", "seconds=1,wait=0", "--kernel", "sched", "-o", "x.leadline", "x.py"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The Linux kernel is not recorded: there is no folder for temporary files" in done.stderr
    assert (tmp_path / "x.leadline").exists()
