"""Damaged cubins against the reader of their lines, under a limit of memory: each gives what it has, or one sentence.

    python -m tests.profiles.fuzz_cubin --seconds 600 [--seed N] [--keep FOLDER]

Bytes are changed anywhere, in the tables of sections and symbols more often, and files are cut. Exit code 1 on any other
exception, on a chain of calls without end, or when a file takes longer than `--slowest` seconds.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tests.fuzzing import Fuzzer, main

from leadline import _cubin

_FILES = sorted((Path(__file__).parent / "cubins").glob("*.cubin"))
_DEEPEST = 64


class CubinFuzzer(Fuzzer):
    purpose = "Damaged cubins are read, or refused in one sentence."
    stem = "cubin"
    accepted = "were read"

    def make(self, number: int, seed: int) -> tuple[str, bytes]:
        """See `Fuzzer`."""
        chance = random.Random(f"{seed} {number}")
        data = bytearray(_FILES[number % len(_FILES)].read_bytes())
        tables = range(max(0, len(data) - 4096), len(data))
        for _ in range(chance.randint(1, 40)):
            at = chance.choice((range(len(data)), tables, range(64)))
            data[chance.choice(at)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        return ".cubin", bytes(data)

    def attempt(self, number: int, path: Path, folder: Path) -> bool:
        """See `Fuzzer`."""
        try:
            cubin = _cubin.read(path.read_bytes())
        except ValueError as error:
            assert str(error).startswith("This ") and "\n" not in str(error), error
            return False
        for function, size, _ in cubin.functions()[:20]:
            cubin.kernel_of(function)
            for offset in range(0, min(size, 4096) + 64, 48):
                assert len(cubin.at(function, offset)) <= _DEEPEST
        return True


if __name__ == "__main__":
    sys.exit(main(CubinFuzzer()))
