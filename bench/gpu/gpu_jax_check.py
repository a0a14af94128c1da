"""JAX under `leadline run`, once with programs that it compiles and once with those of its cache.

    python -m gpu_jax_check SECONDS      the last line printed is the verdict as JSON

Both runs must count every run of the step, and put the GPU's time on lines inside of the step's function.
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


def main() -> int:
    until = time.monotonic() + float(sys.argv[1])
    kept = Path(os.environ.get("ROUND_KEPT", "."))
    found: dict[str, Any] = {"ok": True}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("compiled", "cached"):
            if time.monotonic() > until:
                break
            output = kept / f"jax-{kind}.leadline"
            begin = time.monotonic()
            told = ran(["-m", "leadline", "run", "-o", str(output), str(PROGRAM), str(STEPS)], Path(folder))
            whole_s = time.monotonic() - begin
            said = read(open_profile(output))
            share = said["on_lines_ns"] / said["gpu_ns"] if said["gpu_ns"] else None
            good = said["runs"] == STEPS + 5 and (rehearsing() or (share or 0) >= ON_LINES)
            found[kind] = {**told, **said, "expected runs": STEPS + 5, "share on lines": share, "seconds": whole_s}
            found["ok"] = found["ok"] and good
            print(json.dumps(found), flush=True)
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
