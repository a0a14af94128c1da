"""What a tool costs a program that has three million events a second.

python bench/event_tools.py [--rounds N] [--results DIR]

A loop in C computes for a while and emits an event of tensor memory, again and again. It runs under `leadline run`
without a tool, and with one that adds the events up, by turns. The figure is the CPU time of the loop's thread beside
that without a tool, and beside a loop that emits nothing. What a tool does on its own threads is not in it, but for
what it takes from the caches; it is given beside it. Lost rows are those that the file says were lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results

ROOT = Path(__file__).resolve().parents[1]
MUST = 1.15
EVENTS = 3_000_000
LOOP = r"""
#include <dlfcn.h>
#include <leadline/monitor.h>
#include <time.h>
static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}
volatile double sink;
static void work(long turns) {
  double x = 1.0;
  for (long i = 0; i < turns; ++i) x = x * 1.0000001 + 1e-9;
  sink = x;
}
/* CPU time of `events` turns of work, each with an event where `emit` is an address. */
double run(void* emit, long events, long turns) {
  const double before = cpu_ns();
  for (long i = 0; i < events; ++i) {
    work(turns);
    if (emit) {
      leadline_event event = leadline_event_of(LEADLINE_DOMAIN_MEMORY, LEADLINE_INSTANT);
      event.of.memory.address = 4096 + (i & 1023);
      event.of.memory.bytes = i & 1024 ? -64 : 64;
      event.of.memory.device = -1;
      ((leadline_status(*)(const leadline_event*))emit)(&event);
    }
  }
  return cpu_ns() - before;
}
"""
PROGRAM = """
import ctypes, json, sys, time
loop = ctypes.CDLL(sys.argv[1])
loop.run.restype = ctypes.c_double
loop.run.argtypes = (ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
events = int(sys.argv[2])
per_turn = min(loop.run(None, 2000, 1000) for _ in range(20)) / 2e6
turns = int(1e9 / 3e6 / per_turn)  # so that work and event are three million a second
plain = min(loop.run(None, events // 4, turns) for _ in range(3)) * 4
emit = 0
if sys.argv[3] != "plain":
    import leadline._native as native
    emit = ctypes.cast(ctypes.CDLL(native.__file__).leadline_monitor_emit, ctypes.c_void_p).value
before = time.process_time_ns()
took = loop.run(emit, events, turns)
print("TOOK", json.dumps([plain, took, time.process_time_ns() - before]))
"""
TOOL = """
class Held(Tool):
    events = {"memory": ["bytes"]}
    def start(self): self.total = self.count = 0
    def memory(self, b):
        self.total += int(b["bytes"].sum())
        self.count += len(b)
    def finish(self, out): out.table("held", [{"events": self.count, "bytes": self.total}])
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    ratios: dict[str, list[float]] = {"none": [], "tool": []}
    seen: list[tuple[int, int]] = []
    own: list[float] = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "loop.c").write_text(LOOP)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "held.py").write_text(TOOL)
        include = f"-I{ROOT / 'native/include'}"
        command = ["cc", "-O2", "-shared", "-fPIC", include, "loop.c", "-o", "loop.so", "-ldl"]
        subprocess.run(command, cwd=folder, check=True)
        for _ in range(arguments.rounds):
            for mode, taken in ratios.items():
                plain, took, whole, counts = once(folder, mode)
                taken.append(took / plain)
                if mode == "tool":
                    seen.append(counts)
                    own.append((whole - took) / took)
    added = [tool / none for tool, none in zip(ratios["tool"], ratios["none"], strict=True)]
    rows = [
        ["program without a tool, beside one without events", Spread.of(ratios["none"]).text(), ""],
        ["program with a tool, beside one without events", Spread.of(ratios["tool"]).text(), ""],
        ["program with a tool, beside one without a tool", Spread.of(added).text(), f"{MUST}"],
        ["CPU time of the tool's threads, of the program's", Spread.of(own).text(), ""],
        ["events seen, of those emitted", f"{sum(a for a, _ in seen) / EVENTS / len(seen):.4f}", ""],
        ["events counted as lost", f"{sum(b for _, b in seen):,}", ""],
    ]
    what = f"{EVENTS:,} events in {arguments.rounds} rounds; medians of CPU time.\n\n"
    data = {"ratios": ratios, "own": own, "seen": seen}
    write_results(arguments.results, "event_tools", facts, data, what + markdown_table(["", "times", "at most"], rows))


def once(folder: Path, mode: str) -> tuple[float, float, float, tuple[int, int]]:
    """One process: the loop's time without events and with, the process's, and the events seen and lost."""
    words = [sys.executable, "-m", "leadline", "run", "-q", "-o", "out.leadline"]
    words += ["--tool", "held.py"] if mode == "tool" else []
    command = [*words, "program.py", str(folder / "loop.so"), str(EVENTS), mode]
    done = subprocess.run(command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=True)
    plain, took, whole = json.loads(done.stdout.split("TOOK", 1)[1].splitlines()[0])
    counts = (0, 0)
    if mode == "tool":
        words = [sys.executable, "-m", "leadline", "report", "out.leadline", "--tool", "all", "--format", "json"]
        (found,) = json.loads(subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout)
        counts = (int(found["outputs"][0]["rows"][0][0]), sum(found["lost"].values()))
    return plain, took, whole, counts


if __name__ == "__main__":
    main()
