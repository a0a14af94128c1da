"""Trace windows as CTF, read back by babeltrace2, which has nothing of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import NAMES, TREE, two_machines

from leadline.convert import EXPORTERS, ExportError, Request, What, write
from leadline.convert.ctf.layout import Batch, Clock, EventClass, Integer, Layout, Stream, StreamClass
from leadline.convert.ctf.packets import OutOfOrder, packets
from leadline.convert.request import NothingThereError
from leadline.convert.sinks import FolderSink
from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder

BOOT = "0f2f7b4e-7a3a-4b0e-9a52-6f1d2c3b4a59"
LINE = re.compile(r"^\[(?P<time>\d+)\] (?P<host>\S* ?)(?P<event>[\w:]+): (?P<rest>.*)$")
FORMATS = {one.name: one for one in EXPORTERS}


@pytest.fixture(scope="session")
def babeltrace() -> str:
    found = shutil.which("babeltrace2")
    if found is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")
    return found


def write_ctf(profile: Profile, folder: Path, name: str = "ctf") -> Path:
    with FolderSink(folder) as sink:
        write(profile, FORMATS[name], Request(What.WINDOW), sink)
    return folder


def read(babeltrace: str, folder: Path) -> list[tuple[int, str, str]]:
    """(cycles, event, fields) of every event, in time order; fails when the reader does."""
    done = subprocess.run(
        [babeltrace, "--clock-cycles", "--no-delta", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [LINE.match(line) for line in done.stdout.splitlines()]
    assert all(found), done.stdout
    return [(int(one["time"]), one["event"], one["rest"]) for one in found if one]


def window(rows: list[tuple[str, str, int, int]], *, lost: int = 0) -> Profile:
    """(thread, name, begin, duration) as operators of one process whose machine says which it is."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=7, start_ns=100)
    threads: dict[str, int] = {}
    for thread, name, start, duration in rows:
        row = threads.setdefault(thread, len(threads))
        if row == len(builder._rows["threads"]):
            builder.thread(process, thread, tid=70 + row)
        node = builder.child(builder.node_of_thread(row), builder.frame("operator", name))
        builder.event("operator", node, start, duration, thread=row)
    if lost:
        builder.loss(process, "events_dropped", lost)
    profile = builder.profile()
    record = {"pid": 7, "started_at_ns": 100, "hostname": "ada", "boot_id": BOOT}
    profile.meta["processes"] = [{**record, "clock": {"monotonic_ns": 1_000, "realtime_ns": 501_000}}]
    return profile


def test_spans_of_threads_and_queues_on_two_machines(babeltrace: str, tmp_path: Path) -> None:
    folder = write_ctf(two_machines(), tmp_path / "out")
    found = [
        (time, event.removeprefix("leadline:"), re.findall(r'name = \( "([^"]+)"', rest))
        for time, event, rest in read(babeltrace, folder)
    ]
    assert [one for one in found if one[2]] == [
        (1000, "region_begin", ["outer"]),
        (7000, "operator_begin", ["aten::add"]),  # 30 ns later by the wall clock, by a clock of its own
        (7010, "operator_end", ["aten::add"]),
        (1050, "region_begin", ["other"]),
        (1060, "operator_begin", ["aten::linear"]),
        (1065, "api_begin", ["cudaLaunchKernel"]),
        (1070, "api_end", ["cudaLaunchKernel"]),
        (1080, "operator_end", ["aten::linear"]),
        (1090, "kernel_begin", ["gemm"]),
        (1100, "region_end", ["outer"]),
        (1130, "kernel_end", ["gemm"]),
        (1150, "region_end", ["other"]),
    ]
    kernel = next(rest for _, event, rest in read(babeltrace, folder) if event == "leadline:kernel_begin")
    assert "device = 0, queue = 7" in kernel
    assert "correlation = 11" in kernel


def test_the_clock_is_the_machines_and_the_boot_id_names_it(babeltrace: str, tmp_path: Path) -> None:
    folder = write_ctf(window([("main", "aten::add", 2_000, 10)]), tmp_path / "out")
    metadata = (folder / "ust/metadata").read_text(encoding="utf-8")
    assert f'uuid = "{BOOT}"' in metadata
    assert "offset = 500000;" in metadata
    done = subprocess.run(
        [babeltrace, "--clock-seconds", str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "[0.000502000]" in done.stdout, "CLOCK_REALTIME of the first event"


@pytest.mark.parametrize("seed", range(5))
def test_any_spans_are_sorted_nested_and_there_twice(babeltrace: str, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [
        (f"thread {random.integers(3)}", f"op{random.integers(9)}", int(random.integers(40)), int(random.integers(12)))
        for _ in range(200)
    ]
    found = read(babeltrace, write_ctf(window(rows), tmp_path / "out"))
    stacks: dict[str, list[tuple[str, int]]] = {}
    seen: Counter[tuple[str, int, int]] = Counter()
    for time, event, rest in found:
        if event == "lttng_ust_statedump:procname":
            continue
        where = re.search(r"vtid = (\d+), lane = (\d+)", rest)
        name = re.search(r'name = \( "([^"]+)"', rest)
        assert where
        assert name
        stack = stacks.setdefault(where[0], [])
        if event.endswith("_begin"):
            stack.append((name[1], time))
        else:
            opened, begin = stack.pop()
            assert opened == name[1], "what ends is what began last on its lane"
            seen[opened, begin, time] += 1
    assert not any(stacks.values())
    # beyond sixteen lanes ends are cut, and the number of spans stays
    assert sum(seen.values()) == len(rows)
    if max(Counter(row[0] for row in rows).values()) < 60:
        assert seen == Counter((name, begin, begin + duration) for _, name, begin, duration in rows)


def test_names_that_separate_end_or_escape_survive(babeltrace: str, tmp_path: Path) -> None:
    rows = [("main", name, 100 * at, 10) for at, name in enumerate(NAMES) if name]
    folder = write_ctf(window(rows), tmp_path / "out")
    counts = Counter(event for _, event, _ in read_events(babeltrace, folder))
    assert counts["leadline:operator_begin"] == len(rows)


def read_events(babeltrace: str, folder: Path) -> list[tuple[str, str, str]]:
    """As `read`, of lines that hold an event: names may break lines."""
    done = subprocess.run([babeltrace, str(folder)], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("utf-8", "replace")
    return [("", one, "") for one in re.findall(r"(leadline:\w+|lttng_ust_statedump:procname): \{", text)]


def test_what_was_lost_is_told_by_the_reader(babeltrace: str, tmp_path: Path) -> None:
    folder = write_ctf(window([("main", "aten::add", 2_000, 10)], lost=41), tmp_path / "out")
    done = subprocess.run([babeltrace, str(folder)], capture_output=True, text=True, timeout=60, check=True)
    assert "discarded 41 events" in done.stderr
    assert "41 events dropped" in (folder / "ust/metadata").read_text(encoding="utf-8")


def test_a_cut_file_and_a_record_that_goes_back_are_refused(babeltrace: str, tmp_path: Path) -> None:
    folder = write_ctf(window([("main", "aten::add", 2_000 + at, 1) for at in range(50)]), tmp_path / "out")
    stream = next(path for path in (folder / "ust").iterdir() if path.name != "metadata")
    whole = stream.read_bytes()
    stream.write_bytes(whole[:-40])
    assert subprocess.run([babeltrace, str(folder)], capture_output=True, timeout=60, check=False).returncode == 1
    kind = StreamClass("threads", {}, [EventClass("one", {"value": Integer(8)})])
    layout = Layout(two_uuid(), Clock(two_uuid(), 0), {}, [kind])
    records = np.zeros(2, dtype=kind.record(kind.events[0]))
    records["timestamp"] = [20, 10]
    with pytest.raises(OutOfOrder):
        list(packets(layout, Stream("one", 0, 0, [Batch(np.arange(2), records)]), 0))


def two_uuid() -> Any:
    import uuid

    return uuid.UUID(BOOT)


def test_many_packets_hold_every_event(babeltrace: str, tmp_path: Path) -> None:
    rows = [("main", f"op{at % 300}", 10 * at, 5) for at in range(40_000)]
    folder = write_ctf(window(rows), tmp_path / "out")
    done = subprocess.run(
        [babeltrace, str(folder), "-c", "sink.utils.counter", "-p", "step=+0"], capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    assert re.search(r"\b80001 Event messages", done.stdout), done.stdout
    stream = next(path for path in (folder / "ust").iterdir() if path.name != "metadata")
    assert stream.stat().st_size <= 30 * 80_001


def test_a_profile_without_a_window_and_a_file_as_target_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingThereError, match="--trace steps=3"):
        write_ctf(build(TREE), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    with pytest.raises(ExportError, match="not an empty folder"):
        write_ctf(two_machines(), tmp_path / "full")


def test_ctf_2_has_the_same_packets_and_reads_the_same(tmp_path: Path) -> None:
    """The packets are the same bytes; a reader of CTF 2 (babeltrace2 2.1) prints the same text, where there is one."""
    first = write_ctf(two_machines(), tmp_path / "one")
    second = write_ctf(two_machines(), tmp_path / "two", "ctf2")
    for path in sorted(first.rglob("*")):
        if path.is_file() and path.name != "metadata":
            assert path.read_bytes() == (second / path.relative_to(first)).read_bytes()
    import json

    for metadata in second.rglob("metadata"):
        fragments = [json.loads(part) for part in metadata.read_text(encoding="utf-8").split("\x1e")[1:]]
        assert [one["type"] for one in fragments][:3] == ["preamble", "clock-class", "trace-class"]
    reader = shutil.which("babeltrace2-2.1") or shutil.which("babeltrace2")
    version = (
        subprocess.run([reader, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        if reader
        else ""
    )
    if not re.search(r"Babeltrace 2\.([1-9]|\d\d)", version):
        pytest.skip("CTF 2 is read by babeltrace2 2.1 and later, which this system does not have")
    texts = [
        subprocess.run([str(reader), str(folder)], capture_output=True, text=True, timeout=60, check=True).stdout
        for folder in (first, second)
    ]
    assert texts[0] == texts[1]
