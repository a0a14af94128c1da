"""What measuring takes when it starts and ends, part by part: resident memory, private and of mapped files.

    python bench/start_memory.py [--results FOLDER]

One process, in the order in which a program pays: our Python modules, the native library, the session's start, 50 steps
of three operators, its end. Modules come from byte code, as in an installed package. Pages of mapped files are shared
with whoever else maps them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results

Part = tuple[str, int, int]


def resident_kb() -> tuple[int, int]:
    """Private and file-backed."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return int(found["RssAnon"].split()[0]), int(found["RssFile"].split()[0])


def parts(output: Path) -> list[Part]:
    import torch

    torch.set_num_threads(1)
    x = torch.ones(8, 8, requires_grad=True)
    rows: list[Part] = []

    def steps() -> None:
        for _ in range(50):
            (x @ x).sum().backward()

    def part(name: str, action: Callable[[], object]) -> None:
        before = resident_kb()
        action()
        after = resident_kb()
        rows.append((name, after[0] - before[0], after[1] - before[1]))

    def load(*names: str) -> None:
        for name in names:
            importlib.import_module(name)

    def providers() -> None:
        from leadline.capture.providers import FRAMEWORKS, PROVIDERS

        load(*(name for name in PROVIDERS if name not in FRAMEWORKS))

    steps()
    part("Python modules of a session", lambda: load("leadline", "leadline.capture.session", "leadline.capture.api"))
    part("Python modules of providers", providers)
    part("the native library", lambda: load("leadline._native"))
    import leadline

    session = leadline.profile(str(output), quiet=True)
    part("start", session.__enter__)
    part("50 steps", steps)
    part("stop and file", lambda: session.__exit__(None, None, None))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the memory of starting.")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    if arguments.here:
        print(json.dumps(parts(arguments.here)))
        return 0
    found: list[Part] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/code"
        command = [sys.executable, __file__, "--here", f"{folder}/out.leadline"]
        for _ in range(2):  # the first one compiles
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
    rows = [[name, f"{private:,}", f"{mapped:,}"] for name, private, mapped in found]
    rows.append(["together", *(f"{sum(int(row[place]) for row in found):,}" for place in (1, 2))])
    table = markdown_table(["part", "private, kB", "of mapped files, kB"], rows)
    write_results(arguments.results, "start_memory", machine(), {"parts": found}, table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
