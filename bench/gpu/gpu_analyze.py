"""Five programs under `leadline run`, and what `leadline analyze` and `leadline why` say of each.

    python -m gpu_analyze SECONDS      the last line printed is the verdict as JSON

Profiles and texts are kept where ROUND_KEPT says, so that they can be read, and asked again, elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gpu_five import PROGRAMS
from gpu_run import last_object, rehearsing

VERBS = ("why", "analyze")
RUN_S = 0.5 if rehearsing() else 2.5
_ONE_S = 6.0


def leadline(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "leadline", *words], capture_output=True, text=True, check=False)


def verbs() -> list[str]:
    """Those that this Leadline has."""
    listed = leadline("--help").stdout
    return [verb for verb in VERBS if f"\n  {verb} " in listed]


def main() -> int:
    until = time.monotonic() + float(sys.argv[1])
    kept = Path(os.environ.get("ROUND_KEPT", "."))
    found: dict[str, Any] = {"ok": True}
    for name in PROGRAMS:
        if time.monotonic() > until - _ONE_S:
            found[name] = "no time left"
            continue
        output = kept / f"five-{name}.leadline"
        ran = leadline("run", "-o", str(output), "-m", "gpu_five", name, str(RUN_S))
        found[name] = {"status": ran.returncode, **last_object(ran.stdout)}
        if ran.returncode != 0:
            found[name]["why"] = ran.stderr[-400:]
            found["ok"] = False
        print(json.dumps(found), flush=True)
    known = verbs()
    for name in PROGRAMS:
        output = kept / f"five-{name}.leadline"
        for verb in known if output.exists() else ():
            if time.monotonic() > until:  # can be asked elsewhere, of the profiles
                break
            said = leadline(verb, str(output))
            (kept / f"five-{name}-{verb}.txt").write_text(said.stdout + said.stderr)
            found[name][verb] = next((line for line in said.stdout.splitlines() if line.strip()), "")[:160]
            found["ok"] = found["ok"] and said.returncode in (0, 1)
        print(json.dumps(found), flush=True)
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
