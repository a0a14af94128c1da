"""Where the instructions of an operator go: a counting run under valgrind, whatever else the machine does.

    python bench/instructions.py [--workloads micro,micro_deep] [--steps 10] [--results FOLDER]

The program's own thread only, by library, per operator, beyond what the same steps take unprofiled: instructions, lines
of code and of data missed in first-level caches of 32 KB, mispredicted branches, the last three as callgrind models
them. Needs valgrind and g++ (floor.cpp). Counts are no times: clock readings cost more than others. A build that keeps
its symbols (`-g1`, not stripped) also gives our own functions in the JSON by name.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results

MODES = ("unprofiled", "callbacks that do nothing", "leadline without memory", "leadline", "torch.profiler")
WARMUP = 5
OWNERS = {
    "_native": "Leadline",
    "libtorch": "torch",
    "libc10": "torch",
    "libpython": "Python",
    "libstdc++": "C++ library",
    "libc.": "C library",
}
REST = "loader and others"
CACHES = ("--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
MISSES = {"lines of code": ("I1mr",), "lines of data": ("D1mr", "D1mw"), "mispredictions": ("Bcm", "Bim")}
Counts = Counter[tuple[str, str]]  # by library and function


def work(workload: str, mode: str, steps: int, folder: Path) -> None:
    """The measured process: `steps` steps are counted."""
    import torch

    import leadline
    import workloads
    from floor import empty_callbacks

    step = workloads.load(workload)
    made: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
        "unprofiled": contextlib.nullcontext,
        "callbacks that do nothing": lambda: empty_callbacks(ctypes.CDLL(str(folder / "floor.so"))),
        "leadline without memory": lambda: leadline.profile(folder / "x.leadline", quiet=True, memory=False),
        "leadline": lambda: leadline.profile(folder / "x.leadline", quiet=True),
        "torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    }
    with made[mode]():
        for _ in range(WARMUP):
            step()
        gc.disable()
        _count("on")
        for _ in range(steps):
            step()
        _count("off")


def _count(state: str) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def counted(workload: str, mode: str, steps: int, folder: Path) -> dict[str, Counts]:
    """Per step of the main thread, by callgrind's names: Ir (instructions) and what it models."""
    out = folder / "callgrind"
    for old in folder.glob("callgrind*"):
        old.unlink()
    command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes", *CACHES]
    command += [f"--callgrind-out-file={out}", sys.executable, __file__, "--work", workload, mode, str(steps)]
    subprocess.run([*command, str(folder)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = read(Path(f"{out}-01"))
    return {
        event: Counter({key: round(total / steps) for key, total in counts.items()}) for event, counts in found.items()
    }


def read(file: Path) -> dict[str, Counts]:
    """What was counted outside of calls, by event, of a file in the format of callgrind."""
    names: dict[str, dict[str, str]] = {"ob": {}, "fn": {}}
    events: list[str] = []
    found: dict[str, Counts] = {}
    library = function = ""
    called = False

    def resolve(kind: str, text: str) -> str:
        match = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if match is None:
            return text
        if match[2]:
            names[kind][match[1]] = match[2]
        return names[kind].get(match[1], text)

    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("ob="):
            library = Path(resolve("ob", line[3:])).name
        elif line.startswith("fn="):
            function = resolve("fn", line[3:])
        elif line.startswith("events:"):
            events = line.split()[1:]
            found = {event: Counter() for event in events}
        elif line.startswith(("cob=", "cfn=")):
            resolve(line[1:3], line[4:])
        elif line.startswith("calls="):
            called = True
        elif line[:1] and line[0] in "+-*0123456789":
            if not called:
                for event, count in zip(events, line.split()[1:], strict=False):  # zeros at the end are left out
                    found[event][library, function] += int(count)
            called = False
    return found


def beyond(found: dict[str, Counts], base: dict[str, Counts]) -> dict[str, Counts]:
    """What one mode adds to another."""
    return {
        event: Counter({key: counts[key] - base[event][key] for key in counts | base[event]})
        for event, counts in found.items()
    }


def by_owner(added: Counts) -> Counter[str]:
    """The same by who is to thank for them."""
    total: Counter[str] = Counter()
    for (library, _), instructions in added.items():
        total[next((owner for part, owner in OWNERS.items() if library.startswith(part)), REST)] += instructions
    return total


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print and write the results."""
    if argv is None and sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
        return 0
    from floor import build_empty_callbacks

    parser = argparse.ArgumentParser(description="Count the instructions of operators.")
    parser.add_argument("--workloads", default="micro,micro_deep")
    parser.add_argument("--operators", type=int, default=939, help="operators a step of the workloads")
    parser.add_argument("--steps", type=int, default=10)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    owners = [*dict.fromkeys(OWNERS.values()), REST]
    rows, data = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_empty_callbacks(folder)
        for workload in arguments.workloads.split(","):
            base: dict[str, Counts] = {}
            for mode in MODES:
                found = counted(workload, mode, arguments.steps, folder)
                print(f"{workload}, {mode}: {sum(found['Ir'].values())} a step", file=sys.stderr, flush=True)
                if mode == "unprofiled":
                    base = found
                    continue
                added = beyond(found, base)
                total = {event: by_owner(counts) for event, counts in added.items()}
                each = [total["Ir"][owner] / arguments.operators for owner in owners]
                missed = []
                for events in MISSES.values():
                    ours, all_of_it = (
                        sum(total[event][owner] for event in events for owner in chosen) / arguments.operators
                        for chosen in (["Leadline"], owners)
                    )
                    missed.append(f"{all_of_it:.1f} ({ours:.1f})")
                rows.append([workload, mode, f"{sum(each):.0f}", *(f"{value:.0f}" for value in each), *missed])
                own = {
                    event: [[function, n] for (library, function), n in counts.most_common() if "_native" in library][
                        :30
                    ]
                    for event, counts in added.items()
                }
                data[f"{workload}, {mode}"] = {"by_owner": total, "ours": own}
    head = ["workload", "", "added instructions per operator", *owners, *(f"{name} (Leadline's)" for name in MISSES)]
    chosen = f"--workloads {arguments.workloads} --steps {arguments.steps}"
    table = markdown_table(head, rows)
    write_results(arguments.results, "instructions", facts, {"per_step": data}, table, arguments=chosen)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
