"""What memory costs that was never used before, against memory that was: the ground for the rule `allocator`.

    python bench/new_memory.py [--repeat 5] [--results FOLDER]

Tensors of one size are made and filled, 32 MiB of them, in a process of its own: each takes the place of the one
before, or all are kept. CPU time of the thread; the difference is divided by the bytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from common import Spread, add_results_option, machine, markdown_table, write_results

_SIZES = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
_BYTES = 32 << 20
_MEASURE = """
import json, sys, time, torch
torch.set_num_threads(1)
size, number, keep = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "keep"
for _ in range(50):
    last = torch.empty(size // 4).fill_(1.0)
kept = []
began = time.thread_time_ns()
for _ in range(number):
    last = torch.empty(size // 4).fill_(1.0)
    if keep:
        kept.append(last)
print(json.dumps((time.thread_time_ns() - began) / number))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    more = {size: [extra(size) for _ in range(arguments.repeat)] for size in _SIZES}
    rows = [(f"{size >> 10} KiB", Spread.of(values).text()) for size, values in more.items()]
    table = markdown_table(("tensors of", "ns a byte more: median (range)"), rows)
    write_results(arguments.results, "new_memory", facts, {"more": more}, table, script="bench/new_memory.py")
    return 0


def extra(size: int) -> float:
    """Nanoseconds a byte that new memory takes more than memory used before."""
    return (nanoseconds(size, "keep") - nanoseconds(size, "reuse")) / size


def nanoseconds(size: int, kind: str) -> float:
    command = [sys.executable, "-c", _MEASURE, str(size), str(_BYTES // size), kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
