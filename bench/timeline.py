"""How long a trace window of a million events takes to CTF and Perfetto, and to open with thread states.

    python bench/timeline.py [--events 1000000] [--repeat 3] [--results FOLDER]

The window is synthetic: eight threads with operators nested three deep, four queues of a device, and switches of the
kernel for the states. Every run is a fresh process; CPU time is measured, which is wall time on a machine with nothing
else to do, since all of it is one thread. An event is a span of the window, which CTF and Perfetto write as two
records. Exit code 1 when a median misses its goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.profiles.writer import write_profile
from leadline.schema import TABLES, EventKind, KernelEventKind

_GOALS = {"CTF": 2.0, "Perfetto": 1.0, "open with states and edges": 5.0}
_MOST_BYTES = 30
_THREADS, _QUEUES = 8, 4

_MEASURE = """
import json, sys, time
import numpy as np
from leadline.convert import EXPORTERS, Request, What, write
from leadline.convert.sinks import MemorySink
from leadline.profiles import Profile, open_profile
from leadline.profiles.tables import Tables, empty_columns
from leadline.schema import EventKind
by_name = {one.name: one for one in EXPORTERS}
found = {}
for kernel in (False, True):
    for title, name in {"CTF": "ctf", "CTF 2": "ctf2", "Perfetto": "perfetto"}.items():
        profile = open_profile(sys.argv[1])
        if not kernel:
            columns = {**profile.tables.columns, "kernel_events": empty_columns("kernel_events")}
            profile = Profile(Tables(columns), profile.meta)
        sink = MemorySink()
        began = time.process_time()
        with sink:
            write(profile, by_name[name], Request(What.WINDOW), sink)
        title += " with the kernel" if kernel else ""
        found[title] = time.process_time() - began
        found[title + " bytes"] = len(sink.data) + sum(len(data) for data in sink.members.values())
began = time.process_time()
profile = open_profile(sys.argv[1])
found["states"] = len(profile.window.states["tid"])
found["open with states"] = time.process_time() - began
columns = {name: values.copy() for name, values in profile.events.items()}  # now with a launch for each kernel
work = np.flatnonzero(columns["kind"] == EventKind.KERNEL)
calls = np.flatnonzero(columns["kind"] == EventKind.OPERATOR)[: work.size]
columns["kind"][calls], columns["correlation"][calls] = EventKind.API, columns["correlation"][work[: calls.size]]
window = Profile(Tables({**profile.tables.columns, "events": columns}), profile.meta).window
began = time.process_time()
found["edges"] = len(window.edges["source"])
found["open with states and edges"] = found["open with states"] + time.process_time() - began
print(json.dumps(found))
"""


def synthetic(events: int, switches: int) -> Profile:
    """A window of `events` spans and `switches` switches between its threads on two CPUs."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, rank=0, start_ns=1)
    names = [f"aten::operator_{number}" for number in range(100)]
    nodes = []
    for number in range(_THREADS):
        thread = builder.thread(process, f"thread {number}", tid=100 + number)
        line = builder.child(
            builder.node_of_thread(thread), builder.frame("python", "main", file="train.py", line=number)
        )
        nodes.append([builder.child(line, builder.frame("operator", name)) for name in names])
        nodes[-1].append(builder.child(line, builder.frame("kernel", f"kernel_{number}")))
    builder.device(process, 0)
    tables = builder.tables()
    on_device = events // 5
    columns = {column.name: np.zeros(events, dtype=column.dtype) for column in TABLES["events"].columns}
    for name in ("stream", "device", "sequence", "forward_thread", "awaits", "step"):
        columns[name][:] = -1
    triples = (events - on_device) // 3 * 3
    spans = np.arange(triples)
    owner, place = spans % _THREADS, spans // _THREADS
    level = place % 3
    begin = place // 3 * 10_000 + level * 1_000
    columns["start_ns"][:triples] = begin
    columns["duration_ns"][:triples] = 9_000 - 2 * level * 1_000
    columns["thread"][:triples] = owner
    columns["kind"][:triples] = EventKind.OPERATOR
    columns["node"][:triples] = np.array(nodes)[owner, place % len(names)]
    rest = np.arange(events - triples)
    columns["start_ns"][triples:] = rest // _QUEUES * 10_000
    columns["duration_ns"][triples:] = 8_000
    columns["thread"][triples:], columns["device"][triples:] = -1, 0
    columns["stream"][triples:] = rest % _QUEUES
    columns["correlation"][triples:] = rest + 1
    columns["kind"][triples:] = EventKind.KERNEL
    columns["node"][triples:] = np.array(nodes)[rest % _THREADS, -1]
    order = np.argsort(columns["start_ns"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    meta: dict[str, Any] = {"kernel": {"source": "tracefs", "from_ns": 1, "until_ns": int(columns["start_ns"][-1])}}
    tables = Tables({**tables.columns, "events": columns, "kernel_events": _switches(switches, columns["start_ns"])})
    profile = builder.profile()
    return Profile(tables, {**profile.meta, **meta})


def _switches(count: int, times: np.ndarray) -> dict[str, np.ndarray]:
    columns = {column.name: np.zeros(count, dtype=column.dtype) for column in TABLES["kernel_events"].columns}
    number = np.arange(count)
    columns["time_ns"][:] = np.sort(np.linspace(times[0] + 1, times[-1], count).astype(np.int64))
    columns["cpu"][:] = number % 2
    columns["kind"][:] = np.where(number % 3 == 0, KernelEventKind.WAKING, KernelEventKind.SWITCH)
    columns["tid"][:] = 100 + number % _THREADS
    columns["target"][:] = 100 + (number + 1) % _THREADS
    columns["value"][:] = number % 2
    return columns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    add_results_option(parser)
    options = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "window.leadline"
        write_profile(path, synthetic(options.events, options.events // 3))
        command = [sys.executable, "-c", _MEASURE, str(path)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(options.repeat)
        ]
    rows, missed = [], False
    kernel = options.events // 3
    for title in (
        "CTF",
        "CTF 2",
        "Perfetto",
        "CTF with the kernel",
        "Perfetto with the kernel",
        "open with states",
        "open with states and edges",
    ):
        spread = Spread.of(run[title] for run in runs)
        goal = _GOALS.get(title, 0)
        size = runs[0].get(f"{title} bytes", 0) / (2 * options.events + (kernel if "kernel" in title else 0))
        missed |= (bool(goal) and spread.median > goal) or (size > _MOST_BYTES and "kernel" not in title)
        sizes = (f"{size:.1f}", "" if "kernel" in title else str(_MOST_BYTES)) if size else ("", "")
        rows.append((title, spread.text(), f"{goal:g}" if goal else "", *sizes))
    header = ("what", "seconds of CPU time: median (range)", "must, s", "bytes a record", "must")
    found = f"{runs[0]['states']:,} states, {runs[0]['edges']:,} edges"
    report = f"{options.events:,} events, {kernel:,} of the kernel, {found}, {options.repeat} runs.\n\n"
    report += markdown_table(header, rows)
    write_results(options.results, "timeline", facts, {"events": options.events, "runs": runs}, report)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
