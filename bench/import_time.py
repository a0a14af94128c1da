"""How long `import leadline` takes, and what an unprofiled Python start pays for the installed .pth file.

    python bench/import_time.py [--repeat 15] [--results FOLDER]

Each measurement is a fresh interpreter. The start-up comparison runs `python -c pass` with the line of the .pth file
executed once more at the top, so the difference is the cost of that line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results

PTH_LINE = (Path(__file__).resolve().parent.parent / "leadline.pth").read_text(encoding="utf-8").strip()
TIMED = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"
STATEMENTS = {
    "import leadline": "import leadline",
    "import leadline, then open": "import leadline; leadline.open",
    "the .pth line without LEADLINE": PTH_LINE,
}


def seconds(statement: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "-c", TIMED.format(statement)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the import time.")
    parser.add_argument("--repeat", type=int, default=15)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    runs: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(arguments.repeat):
        for name, statement in STATEMENTS.items():
            runs[name].append(seconds(statement))
    rows = [[name, Spread.of(1e3 * value for value in values).text(3)] for name, values in runs.items()]
    write_results(arguments.results, "import_time", facts, {"seconds": runs}, markdown_table(["", "ms"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
