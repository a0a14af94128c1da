"""What the recorder of `leadline run --os-trace` costs per event, in CPU time of the threads that are recorded.

    python bench/kernel.py [--rounds 20000] [--repeat 9] [--results FOLDER]

Two processes on one core pass a byte to and fro, which is little else than switches and system calls. They take turns
with and without a recorder; the difference of medians over the number of events is the cost of one. Needs a machine
that lets this user record. Exit code 1 when a switch costs more than its goal.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results
from leadline.capture.kernel.recording import Refused
from leadline.capture.kernel.tracefs import TracefsRecorder
from leadline.trace.kernel import tracefs

_GOAL_NS = 1_000
_BUDGET_BYTES = 64 << 20


def ping_pong(rounds: int) -> float:
    """CPU seconds of both sides."""
    forth, back = os.pipe(), os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid = os.fork()
    if pid == 0:
        other = os.fork()
        if other == 0:
            for _ in range(rounds):
                os.read(forth[0], 1)
                os.write(back[1], b"x")
            os._exit(0)
        for _ in range(rounds):
            os.write(forth[1], b"x")
            os.read(back[0], 1)
        os.waitpid(other, 0)
        os._exit(0)
    os.waitpid(pid, 0)
    for end in (*forth, *back):
        os.close(end)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(source: str, rounds: int) -> tuple[float, int, float]:
    """CPU seconds of both sides, events kept, and CPU seconds of the recorder itself."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = TracefsRecorder(source, _BUDGET_BYTES)
        try:
            recorder.switch.write_text("1", encoding="ascii")
            taken = ping_pong(rounds)
            began = resource.getrusage(resource.RUSAGE_SELF)
            recorder.end()
            recording = recorder.save(Path(folder))
            ended = resource.getrusage(resource.RUSAGE_SELF)
        finally:
            recorder.remove()
        own = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        files = {int(path.stem[3:]): path.read_bytes() for path in Path(folder).glob("cpu*.*")}
        parts, lost = tracefs.decode(files, recording.details["formats"], recording.details["machine"])
        return taken, sum(len(part["time_ns"]) for part in parts) + lost, own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=9)
    add_results_option(parser)
    options = parser.parse_args()
    facts = machine()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows, found, missed = [], {}, False
    for source in ("sched", "syscalls"):
        try:
            runs = [(ping_pong(options.rounds), *recorded(source, options.rounds)) for _ in range(options.repeat)]
        except Refused as error:
            print(f"{source}: not permitted here: {error}", file=sys.stderr)
            continue
        plain, with_it, events, own = (statistics.median(column) for column in zip(*runs, strict=True))
        cost = (with_it - plain) / events * 1e9
        found[source] = runs
        missed |= source == "sched" and cost > _GOAL_NS
        goal = str(_GOAL_NS) if source == "sched" else ""
        cells = (f"{plain:.3f}", f"{with_it:.3f}", f"{events:,.0f}", f"{cost:.0f}", goal, f"{100 * own / with_it:.1f}")
        rows.append((source, *cells))
    head = (
        "recorder",
        "plain, s",
        "recorded, s",
        "events",
        "ns an event",
        "must",
        "reading the buffer, % of the CPU time",
    )
    report = f"{options.rounds:,} rounds, {options.repeat} turns, medians of CPU time.\n\n" + markdown_table(head, rows)
    write_results(options.results, "kernel", facts, {"rounds": options.rounds, "runs": found}, report)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
