"""Long runs in short: operators, threads that come and go, forks, windows opened and closed, files that roll.

    python bench/soak.py --table      # 10^7 operators, 10^5 threads, 10^4 forks, 10^3 windows, by themselves; minutes
    python bench/soak.py              # less of all at once, a minute

Measures its own memory, handles and the part directory at each of ten marks. It fails when memory has grown by more
than a mebibyte over the last half and in more than one step, when a handle is left, or when the files do not count
every region.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from common import RESULTS, machine, markdown_table, write_results

MARKS = 10
MOST_GROWTH = 1 << 20


def inside(arguments: argparse.Namespace) -> None:
    """The program that is measured. One line of JSON for each mark."""
    import leadline

    value = None
    if arguments.torch:
        import torch

        value = torch.ones(4)

    def work(times: int) -> None:
        for _ in range(times):
            with leadline.region("operator"):
                if value is not None:
                    value.add_(1)

    for mark in range(MARKS):
        for part, times in (("threads", arguments.threads), ("forks", arguments.forks), ("windows", arguments.windows)):
            for number in range(int(times) // MARKS):
                one(part, number, work)
        work(int(arguments.operators) // MARKS)
        leadline.step()
        print(json.dumps({"mark": mark, **standing()}), flush=True)


def one(part: str, number: int, work: object) -> None:
    from leadline.capture.current import CURRENT

    assert callable(work)
    if part == "threads":
        thread = threading.Thread(target=work, args=(2,), name=f"worker-{number}")
        thread.start()
        thread.join()
    elif part == "forks":
        child = os.fork()
        if child == 0:
            work(2)
            os._exit(0)
        os.waitpid(child, 0)
    elif CURRENT.native is not None:
        CURRENT.native.trace_start()
        work(2)
        CURRENT.native.trace_stop()


def standing() -> dict[str, int]:
    """Bytes of memory, handles, and files in the part directory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    session = os.environ.get("LEADLINE_SESSION", "")
    return {
        "resident_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "handles": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - counted, nothing else
        "files": len(list(Path(session).iterdir())) if session else 0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operators", type=float, default=2e5)
    parser.add_argument("--threads", type=float, default=500)
    parser.add_argument("--forks", type=float, default=50)
    parser.add_argument("--windows", type=float, default=100)
    parser.add_argument("--every", default="2s")
    parser.add_argument("--torch", action="store_true", help="run an operator of torch in each region")
    parser.add_argument(
        "--most-growth", type=int, default=MOST_GROWTH, help="bytes over the last half; a short run still warms up then"
    )
    parser.add_argument("--table", action="store_true", help="the numbers that count, into bench/results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments)
        return 0
    if arguments.table:
        return table()
    with tempfile.TemporaryDirectory() as folder:
        return outside(Path(folder), arguments)


def table() -> int:
    """Each part by itself, in a run of its own."""
    facts = machine()
    rows = []
    for name, times, every in (
        ("operators", 1e7, "5s"),
        ("threads", 1e5, "5s"),
        ("windows", 1e3, "1s"),
        ("forks", 1e4, "20s"),
    ):
        sizes = {"operators": 1e5, "threads": 0, "forks": 0, "windows": 0} | {name: times}
        command = [
            sys.executable,
            __file__,
            "--every",
            every,
            *(w for n, v in sizes.items() for w in (f"--{n}", f"{v:g}")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout.strip():
            print(done.stderr, file=sys.stderr)
            return 1
        rows.append({"what": name, "times": times, **json.loads(done.stdout.splitlines()[-1])})
    head = [
        "what",
        "times",
        "memory grew over the last half, kB",
        "handles left",
        "files",
        "regions counted",
        "of",
        "seconds",
    ]
    cells = [
        [
            one["what"],
            f"{one['times']:,.0f}",
            f"{one['grown_bytes'] / 1000:,.0f}",
            str(one["handles"]),
            str(one["rolled"]),
            f"{one['counted']:,}",
            f"{one['wanted']:,}",
            f"{one['seconds']:,.0f}",
        ]
        for one in rows
    ]
    write_results(RESULTS, "soak", facts, {"rows": rows}, markdown_table(head, cells), arguments="--table")
    return 0


def lasting(marks: list[dict[str, int]]) -> int:
    """Bytes that these marks grew without their largest single step. What leaks grows from mark to mark; one step comes
    of a busy machine's longer queues, at whichever mark it was busy."""
    sizes = [mark["resident_bytes"] for mark in marks]
    steps = [after - before for before, after in itertools.pairwise(sizes)]
    return sum(steps) - max(steps)


def outside(folder: Path, arguments: argparse.Namespace) -> int:
    """Run the program under Leadline and judge what it says; the exit code."""
    from leadline.profiles import open_profile

    began = time.monotonic()
    run = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(folder / "soak.leadline")]
    run += ["--every", arguments.every, "--flush-interval", "0.5", __file__, "--inside", *sys.argv[1:]]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    marks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(marks) != MARKS:
        print(done.stderr, file=sys.stderr)
        return 1
    for mark in marks:
        mebibytes = mark["resident_bytes"] / 2**20
        print(f"{mark['mark']:>3} {mebibytes:9.2f} MiB {mark['handles']:4} handles {mark['files']:5} files")
    grown = marks[-1]["resident_bytes"] - marks[MARKS // 2]["resident_bytes"]
    handles = marks[-1]["handles"] - marks[0]["handles"]
    counts = dict.fromkeys(("operator",), 0)
    files = sorted(folder.glob("soak_*.leadline"))
    for file in files:
        for node in open_profile(file).tree.find(kind="region", name="operator"):
            counts["operator"] += node.exclusive("call_time").count
    wanted = sum(int(times) // MARKS * MARKS * 2 for times in (arguments.threads, arguments.forks, arguments.windows))
    wanted += int(arguments.operators) // MARKS * MARKS
    said = {
        "grown_bytes": grown,
        "handles": handles,
        "rolled": len(files),
        "counted": counts["operator"],
        "wanted": wanted,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(said))
    most = arguments.most_growth
    flat = grown <= most or lasting(marks[MARKS // 2 :]) <= most // 4
    good = flat and handles <= 0 and counts["operator"] == wanted and len(files) > 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
