"""JAX under `leadline run`, once with programs that it compiles and once with those of its cache.

    python -m gpu_jax_check SECONDS      the last line printed is the verdict as JSON

The program runs without Leadline first: one that fails by itself says nothing about Leadline. Both runs must count
every run of the step, and put the GPU's time on lines inside of the step's function. Where a run fails under Leadline
and not without, it is tried again with parts of Leadline left out, so that the reply names the part.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_jax import PROGRAM, ran, read
from gpu_run import rehearsing

from leadline.profiles import open_profile

STEPS = 3 if rehearsing() else 300
ON_LINES = 0.99
WITHOUT: dict[str, tuple[str, ...]] = {"XLA's ranges": ("--nvtx=-TSL",), "CPU samples": ("--no-cpu-sample",)}
"""Parts that a failed run is tried again without."""


def main() -> int:
    until = time.monotonic() + float(sys.argv[1])
    kept = Path(os.environ.get("ROUND_KEPT", "."))
    found: dict[str, Any] = {"ok": True}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)

        def attempt(kind: str, words: list[str], place: Path) -> dict[str, Any]:
            begin = time.monotonic()
            try:
                told = ran([*words, str(PROGRAM), str(STEPS)], place)
            except RuntimeError as error:
                told = {"failed": str(error)[-1500:]}
            found[kind] = {**told, "seconds": round(time.monotonic() - begin, 1)}
            print(json.dumps(found), flush=True)
            return told

        measured = ["-m", "leadline", "run", "-o"]
        bare = attempt("without Leadline", [], cache / "bare")
        for kind in ("compiled", "cached"):
            if time.monotonic() > until:
                break
            output = kept / f"jax-{kind}.leadline"
            told = attempt(kind, [*measured, str(output)], cache / "measured")
            if "failed" in told:
                found["ok"] = False
                for part, words in WITHOUT.items() if "failed" not in bare else ():
                    if time.monotonic() < until:
                        place = kept / f"jax-without-{part.split()[0]}.leadline"
                        attempt(f"without {part}", [*measured, str(place), *words], cache / part.split()[0])
                break
            said = read(open_profile(output))
            share = said["on_lines_ns"] / said["gpu_ns"] if said["gpu_ns"] else None
            good = said["runs"] == STEPS + 5 and (rehearsing() or (share or 0) >= ON_LINES)
            found[kind] |= {**said, "expected runs": STEPS + 5, "share on lines": share}
            found["ok"] = found["ok"] and good
            print(json.dumps(found), flush=True)
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
