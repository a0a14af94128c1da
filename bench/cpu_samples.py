"""What CPU samples cost: CPU time of the same work under Leadline without samples, with them, and without Leadline
beside a handler that does nothing.

    python bench/cpu_samples.py [--rounds 9] [--results FOLDER]

The modes take turns in a random order; each run is a process of its own that says what CPU time it used from the first
line of the work to its end, with all its threads. Ratios are to the run of the same round without samples, the empty
handler's to that without Leadline.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results

WORK = """
import time
begin = time.process_time()
def inner(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total
def outer(n):
    return [inner(n) for _ in range(20)]
def deep(depth, n):
    return deep(depth - 1, n) if depth else outer(n)
for _ in range(30):
    deep(40, 60_000)
print(time.process_time() - begin)
"""
HANDLER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile long calls;
static void nothing(int number) { (void)number; ++calls; }
long handled(void) { return calls; }
// Interrupts this thread as Leadline does, for a handler that does nothing.
int begin(long hz) {
  struct perf_event_attr wanted;
  struct f_owner_ex owner = {F_OWNER_TID, (int)syscall(SYS_gettid)};
  struct sigaction own;
  memset(&own, 0, sizeof own);
  own.sa_handler = nothing;
  own.sa_flags = SA_RESTART;
  sigaction(SIGRTMIN + 3, &own, 0);
  memset(&wanted, 0, sizeof wanted);
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.sample_period = 1000000000 / hz;
  wanted.wakeup_events = 1;
  wanted.exclude_kernel = wanted.exclude_hv = wanted.disabled = 1;
  int file = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
  if (file < 0) return -1;
  fcntl(file, F_SETSIG, SIGRTMIN + 3);
  fcntl(file, F_SETOWN_EX, &owner);
  fcntl(file, F_SETFL, O_ASYNC | O_NONBLOCK);
  return ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
}
"""
BESIDE = "import ctypes, sys\nhandler = ctypes.CDLL('./handler.so')\nassert handler.begin(int(sys.argv[1])) == 0\n"
ALONE = "without Leadline"
BASE = "no samples"
MODES: dict[str, tuple[str, ...]] = {
    ALONE: (),
    "999 Hz, empty handler": ("999",),
    BASE: (),
    "99 Hz": ("--cpu-sample", "99"),
    "99 Hz, native frames": ("--cpu-sample", "99", "--native"),
    "999 Hz": ("--cpu-sample", "999"),
    "999 Hz, native frames": ("--cpu-sample", "999", "--native"),
}
WITHOUT = (ALONE, "999 Hz, empty handler")


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work.py").write_text(WORK, encoding="utf-8")
        (folder / "beside.py").write_text(BESIDE + WORK, encoding="utf-8")
        (folder / "handler.c").write_text(HANDLER, encoding="utf-8")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "handler.c", "-o", "handler.so"], cwd=folder, check=True)
        for number in range(arguments.rounds):
            for mode in random.Random(number).sample(list(MODES), len(MODES)):
                seconds[mode].append(_run(folder, mode))
            print(number, {mode: round(found[-1], 3) for mode, found in seconds.items()}, flush=True)
    rows = []
    for mode, found in seconds.items():
        base = seconds[ALONE if mode in WITHOUT else BASE]
        ratios = Spread.of(one / other for one, other in zip(found, base, strict=True))
        rows.append([mode, f"{statistics.median(found):.3f} s", "" if found is base else ratios.text(3)])
    head = ["mode", "CPU time", "to the same without samples (range)"]
    table = markdown_table(head, rows)
    title = "CPU samples: pure Python 62 frames deep"
    write_results(arguments.results, "cpu_samples", facts, seconds, table, title=title)


def _run(folder: Path, mode: str) -> float:
    command = ["work.py"]
    if mode in WITHOUT:
        command = ["beside.py", *MODES[mode]] if MODES[mode] else command
    else:
        command = ["-m", "leadline.cli.main", "run", "-q", *MODES[mode], *command]
    result = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True)
    return float(result.stdout)


if __name__ == "__main__":
    main()
