"""How long a large profile of XLA (`.xplane.pb`) takes to become a profile, and how much memory.

    python bench/xspace.py [--events 2050000] [--repeat 3] [--file run.xplane.pb] [--results FOLDER]

The file is recorded by JAX's own profiler around one of the models of `workloads/twins`, or given. JAX's recorder holds
several kB for each event, so a tenth is recorded and every thread's events are put in ten times, one after the other:
numbers of runs come again, names, stacks and statistics are as in a real one. Every reading is a process of its own;
CPU time counts, so other programs on the machine matter less. Exit code 1 when a median misses its goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, megabytes, write_results
from leadline.trace.protobuf import bytes_field, present_field

COPIES = 10
SPAN_PS = 3600 * 10**12
"""From one copy to the next: longer than what is recorded."""
_MUST_S = 5.0
_MUST_BYTES = 512 * 2**20
_STEPS = {
    "import_s": "import leadline",
    "tables_s": "bytes into tables",
    "profile_s": "tables into a profile",
    "whole_s": "all together (must: under 5)",
}

_RECORD = """
import sys
sys.path.insert(0, sys.argv[1])
import jax
from workloads.twins import transformer
step = transformer.in_jax()
step()
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
jax.profiler.start_trace(sys.argv[2], profiler_options=options)
for number in range(int(sys.argv[3])):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        step()
jax.profiler.stop_trace()
"""

_MEASURE = """
import json, resource, sys, time
began = time.process_time()
import leadline
from leadline.trace.importers import xspace_tree
from leadline.trace.source import sources
from leadline.trace.xspace import read_xspace
imported = time.process_time()
space = read_xspace(sources(sys.argv[1])[0])
read = time.process_time()
profile = xspace_tree.profile_of(space, "")
made = time.process_time()
print(json.dumps({
    "import_s": imported - began, "tables_s": read - imported, "profile_s": made - read, "whole_s": made - began,
    "events": len(space.trace), "nodes": len(profile.tree.parent),
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def recorded(folder: Path, steps: int) -> Path:
    """A profile of that many steps."""
    here = str(Path(__file__).resolve().parent)
    subprocess.run([sys.executable, "-c", _RECORD, here, str(folder), str(steps)], check=True)
    return next(folder.glob("**/*.xplane.pb"))


def measured(file: Path) -> dict[str, float]:
    """One reading."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(file)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def large(folder: Path, events: int) -> Path:
    """A profile of about so many events: how many a step has is found out first."""
    few = 20
    short = measured(recorded(folder / "short", few))["events"]
    once = recorded(folder / "long", round(events / COPIES * few / short))
    made = folder / "copies.xplane.pb"
    made.write_bytes(repeated(once.read_bytes()))
    return made


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview, int, int]]:
    """Of a message of varints and lengths: number, value, where it begins and ends."""
    at = 0
    while at < len(message):
        begin = at
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
            yield key >> 3, value, begin, at
        else:
            size, at = (8, at) if key & 7 == 1 else varint(message, at)
            yield key >> 3, message[at : at + size], begin, at + size
            at += size


def varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def repeated(space: bytes) -> bytes:
    """XSpace{1 planes}, XPlane{3 lines}, XLine{4 events}, XEvent{2 offset_ps}: each event as often as COPIES says."""
    return b"".join(
        bytes_field(1, _plane(value)) if number == 1 and isinstance(value, memoryview) else bytes(space[begin:end])
        for number, value, begin, end in fields(memoryview(space))
    )


def _plane(plane: memoryview) -> bytes:
    return b"".join(
        bytes_field(3, _line(value)) if number == 3 and isinstance(value, memoryview) else bytes(plane[begin:end])
        for number, value, begin, end in fields(plane)
    )


def _line(line: memoryview) -> bytes:
    parts, events = [], []
    for number, value, begin, end in fields(line):
        if number == 4 and isinstance(value, memoryview):
            events.append(_event(value))
        else:
            parts.append(bytes(line[begin:end]))
    for copy in range(COPIES):
        parts += [
            bytes_field(4, before + present_field(2, offset + copy * SPAN_PS) + after)
            for before, offset, after in events
        ]
    return b"".join(parts)


def _event(event: memoryview) -> tuple[bytes, int, bytes]:
    """What stands before the offset, the offset, what stands behind it."""
    for number, value, begin, end in fields(event):
        if number == 2 and isinstance(value, int):
            return bytes(event[:begin]), value, bytes(event[end:])
    return bytes(event), 0, b""


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    parser = argparse.ArgumentParser(description="How long a large profile of XLA takes to open.")
    parser.add_argument("--events", type=int, default=2_050_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--file", type=Path)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or large(Path(folder), arguments.events)
        size = file.stat().st_size
        runs = [measured(file) for _ in range(arguments.repeat)]
    spreads = {name: Spread.of([run[name] for run in runs]) for name in _STEPS}
    peak = Spread.of([run["peak_bytes"] for run in runs])
    rows = [[f"{text}, s", f"{spreads[name].median:.2f}"] for name, text in _STEPS.items()]
    rows.append([f"peak memory (must: under {megabytes(_MUST_BYTES)})", megabytes(round(peak.median))])
    print(f"{megabytes(size)}, {runs[0]['events']:,} events")
    table = f"{megabytes(size)}, {runs[0]['events']:,} events.\n\n{markdown_table(['CPU time', 'median'], rows)}"
    data = {"bytes": size, "runs": runs}
    write_results(arguments.results, "xspace", facts, data, table, arguments=f"--repeat {arguments.repeat}")
    return int(spreads["whole_s"].median > _MUST_S or peak.median > _MUST_BYTES)


if __name__ == "__main__":
    raise SystemExit(main())
