"""Damaged profiles of JAX and TensorFlow against `leadline import`, under a limit of memory: each becomes a profile whose
tables add up and whose edges can be asked for, or is refused in one sentence.

    python -m tests.importers.fuzz --seconds 600 [--seed N] [--keep FOLDER]

Exit code 1 on the first that does neither, or when a file takes longer than `--slowest` seconds; the file is kept and its
number printed. The same seed gives the same files.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from functools import cache
from pathlib import Path

from tests.fuzzing import Fuzzer, main
from tests.importers import test_tensorflow1, test_xspace, test_xspace_devices
from tests.importers.xspace_files import space
from tests.truth.invariants import contradictions

from leadline.trace.importers import import_traces
from leadline.trace.statistics import statistics
from leadline.trace.tables import TraceError
from leadline.whatif import load
from leadline.whatif.kinds import GraphError

RECORDED = Path(__file__).parent / "recorded"
_MOST_BYTES = 20_000
"""Of texts, whose beginning is like the rest."""


@cache
def wholes() -> list[tuple[str, bytes]]:
    """Ending and contents of the files that are damaged."""
    found = [
        (".xplane.pb", test_xspace.gpu()),
        (".xplane.pb", test_xspace.cpu(3, 2)),
        (
            ".xplane.pb",
            space(*test_xspace_devices.tpu(0, 0), *test_xspace_devices.tpu(1, 30), test_xspace_devices.PROGRAMS),
        ),
        (".pb", test_tensorflow1.metadata(test_tensorflow1.debug())),
    ]
    for packed in sorted(RECORDED.glob("*.gz")):
        ending = next((one for one in (".xplane.pb", ".run_metadata.pb", ".log") if packed.stem.endswith(one)), "")
        if ending:
            data = gzip.decompress(packed.read_bytes())
            found.append((ending, data[:_MOST_BYTES] if ending == ".log" else data))
    drawn = json.loads(gzip.decompress((RECORDED / "tensorflow-2.21.0.timeline.json.gz").read_bytes()))
    found.append((".json", json.dumps({"traceEvents": drawn["traceEvents"][:50]}).encode()))
    return found


class ImportFuzzer(Fuzzer):
    purpose = "Damaged profiles of JAX and TensorFlow against leadline import."
    stem = "import"
    accepted = "were read"

    def make(self, number: int, seed: int) -> tuple[str, bytes]:
        chance = random.Random(seed * 1_000_003 + number)
        ending, whole = wholes()[number % len(wholes())]
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data))
            change = chance.randrange(4)
            if change == 0:
                data[at] = chance.randrange(256)
            elif change == 1:  # a number of many digits
                data[at : at + 10] = b"\xff" * chance.randrange(1, 10) + b"\x01"
            elif change == 2:
                del data[at : at + chance.randrange(1, 20)]
            else:
                data[at:at] = data[at : at + chance.randrange(1, 60)]
        cut = chance.choice([len(data), len(data), chance.randrange(1, len(data))])
        return ending, bytes(data[:cut])

    def attempt(self, number: int, path: Path, folder: Path) -> bool:
        try:
            profile = import_traces([path])
        except TraceError as error:
            assert "\n" not in str(error).strip(), error
            return False
        assert contradictions(profile) == []
        edges, rows = profile.window.edges, len(profile.events["start_ns"])
        for side in ("source", "target"):
            assert not edges[side].size or 0 <= edges[side].min() <= edges[side].max() < rows
        for by in ("operator", "kernel", "stage"):
            statistics(profile, by)
        if number % 4 == 0:
            try:
                load(path)
            except (TraceError, GraphError) as error:
                assert "\n" not in str(error).strip(), error
        return True


if __name__ == "__main__":
    sys.exit(main(ImportFuzzer()))
