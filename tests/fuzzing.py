"""The loop that every fuzzer runs in: files made of a seed, one after the other, until the time or the number is up.

A fuzzer is a `Fuzzer`: it makes file NUMBER of a seed and tries it. Any exception, or a file that takes too long, ends
the loop with code 1; the file is kept and its number printed. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

MEMORY_BYTES = 600 << 20
"""Address space beyond what the interpreter and NumPy already hold: twice what 64 MiB of contents may need."""


class Fuzzer(ABC):
    """What is particular to one fuzzer."""

    purpose: str
    """A sentence for --help."""
    stem: str
    """How kept files are called: STEM-SEED-NUMBER and their ending."""
    accepted: str
    """What is said of files that were not refused, such as "were answered"."""

    @abstractmethod
    def make(self, number: int, seed: int) -> tuple[str, bytes]:
        """Ending and contents of a file."""

    @abstractmethod
    def attempt(self, number: int, path: Path, folder: Path) -> bool:
        """Use the file; whether it was accepted. Raises where it was neither accepted nor refused in one sentence."""


def limit_memory() -> None:
    """From now on the process may take `MEMORY_BYTES` more than it has; what needs more raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(fuzzer: Fuzzer, argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=fuzzer.purpose)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--files", type=int, default=sys.maxsize, help="stop after so many files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--slowest", type=float, default=20.0, help="seconds one file may take")
    parser.add_argument("--keep", type=Path, default=Path(), help="folder for the file that failed")
    arguments = parser.parse_args(argv)
    limit_memory()
    end = time.monotonic() + arguments.seconds
    accepted, number = 0, arguments.first
    with tempfile.TemporaryDirectory() as place:
        while number - arguments.first < arguments.files and (began := time.monotonic()) < end:
            ending, data = fuzzer.make(number, arguments.seed)
            path = Path(place) / f"file{ending}"
            path.write_bytes(data)
            problem = ""
            try:
                accepted += fuzzer.attempt(number, path, Path(place))
            except Exception:
                problem = traceback.format_exc()
            took = time.monotonic() - began
            if not problem and took > arguments.slowest:
                problem = f"It took {took:.1f} seconds."
            if problem:
                kept = arguments.keep / f"{fuzzer.stem}-{arguments.seed}-{number}{ending}"
                kept.write_bytes(data)
                print(f"{problem}\nFile {number} of seed {arguments.seed} is kept as {kept}.")
                return 1
            number += 1
    made = number - arguments.first
    print(f"{made} files, of which {accepted} {fuzzer.accepted}; the rest got one sentence each.")
    return 0
