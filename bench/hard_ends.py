"""What the worst ends leave: SIGKILL at random moments of a program that forks, and a run with very many children.

    python bench/hard_ends.py              # 30 kills, 1,100 children; some minutes on a quiet machine
    python bench/hard_ends.py --kills 3 --children 50

Fails when a killed run leaves no file that opens, when one misses more than two flush intervals and a second of what
the program said it had done, or when the report of many children, or the supervisor after the program's end, takes
more than 5 s of CPU time. Wall times are printed as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results

FLUSH_S = 1.0
MOST_CPU_S = 5.0
FORKING = """
import os, sys, time
import leadline
done, next_fork = 0, time.monotonic()
while True:
    with leadline.region("call"):
        time.sleep(0.001)
    done += 1
    os.write(3, f"{time.monotonic():.6f} {done:9d}\\n".encode())
    if time.monotonic() > next_fork:
        next_fork += 0.55
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
"""
CHILDREN = """
import os, sys, time
import leadline
for number in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        with leadline.region("work"):
            pass
        os._exit(0)
    os.waitpid(child, 0)
open("ended", "w").write(str(time.monotonic()))
"""


def killed(folder: Path, seed: int) -> tuple[int, int, int]:
    """Calls made in all, made until what may be missing, and those of the file that was recovered."""
    (folder / "forking.py").write_text(FORKING)
    log = folder / "log"
    command = [sys.executable, "-m", "leadline", "run", "-q", "--flush-interval", str(FLUSH_S), "-o", "out.leadline"]
    shell = f'exec 3>>{log.name}; exec "$@"'
    run = subprocess.Popen(["sh", "-c", shell, "sh", *command, "forking.py"], cwd=folder, start_new_session=True)
    while not log.exists() or log.stat().st_size == 0:
        time.sleep(0.05)
        if run.poll() is not None:
            raise RuntimeError("the program did not begin")
    time.sleep(random.Random(seed).uniform(4, 10))
    for line in subprocess.run(
        ["ps", "-o", "pid=,args=", "--sid", str(run.pid)], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        pid, _, words = line.strip().partition(" ")
        if "forking.py" in words and "leadline" not in words:
            os.kill(int(pid), signal.SIGKILL)
    run.wait()
    told = [(float(words[0]), int(words[1])) for words in map(str.split, log.read_text().splitlines())]
    limit = told[-1][0] - 2 * FLUSH_S - 1
    needed = max((done for at, done in told if at <= limit), default=0)
    return told[-1][1], needed, regions(folder / "out.leadline", "call")


def regions(file: Path, name: str) -> int:
    """How many regions of this name a profile has."""
    from leadline.profiles import open_profile

    found = open_profile(file).tree.find(kind="region", name=name)
    return int(sum(node.exclusive("call_time").count for node in found))


def cpu_of(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of the child processes that `work` waits for."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def many(folder: Path, children: int) -> dict[str, float]:
    """A program with so many forked children: what the supervisor needs after its end, and the report."""
    (folder / "children.py").write_text(CHILDREN)
    leadline = [sys.executable, "-m", "leadline"]
    run = subprocess.Popen([*leadline, "run", "-q", "-o", "many.leadline", "children.py", str(children)], cwd=folder)
    while not (folder / "ended").exists() and run.poll() is None:
        time.sleep(0.02)
    before = _cpu_now(run.pid)
    after, wall = before, time.monotonic()
    while run.poll() is None:
        after = max(after, _cpu_now(run.pid))
        time.sleep(0.02)
    supervisor_wall = time.monotonic() - wall
    counted = regions(folder / "many.leadline", "work")
    report = [*leadline, "report", "many.leadline"]
    report_cpu, report_wall = cpu_of(lambda: subprocess.run(report, cwd=folder, stdout=subprocess.DEVNULL, check=True))
    return {
        "children": children,
        "counted": counted,
        "supervisor_cpu_s": round(after - before, 2),
        "supervisor_wall_s": round(supervisor_wall, 2),
        "report_cpu_s": round(report_cpu, 2),
        "report_wall_s": round(report_wall, 2),
    }


def _cpu_now(pid: int) -> float:
    """CPU seconds of a process, 0 where it has gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--children", type=int, default=1100)
    add_results_option(parser)
    arguments = parser.parse_args()
    rows = []
    for seed in range(arguments.kills):
        with tempfile.TemporaryDirectory() as folder:
            made, needed, found = killed(Path(folder), seed)
        print(json.dumps({"kill": seed, "made": made, "needed": needed, "found": found}), flush=True)
        rows.append((made, needed, found))
    with tempfile.TemporaryDirectory() as folder:
        of_many = many(Path(folder), arguments.children)
    print(json.dumps(of_many))
    good = sum(needed <= found <= made for made, needed, found in rows)
    lost = max((1 - found / made for made, _, found in rows), default=0.0)
    cells = [
        ["killed runs whose file holds what it must", f"{good} of {len(rows)}"],
        ["largest share of the calls that one of them misses", f"{lost:.1%}"],
        *([name, str(value)] for name, value in of_many.items()),
    ]
    table = markdown_table(["what", "value"], cells)
    write_results(arguments.results, "hard_ends", machine(), {"kills": rows, "many": of_many}, table)
    cheap = max(of_many["supervisor_cpu_s"], of_many["report_cpu_s"]) <= MOST_CPU_S
    return 0 if good == len(rows) and cheap and of_many["counted"] == arguments.children else 1


if __name__ == "__main__":
    sys.exit(main())
