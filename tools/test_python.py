"""The Python tests as continuous integration runs them: `test_python.py JOBS`.

A few failures get a second try, one after the other on a machine that does nothing else, and are named at the end
whatever comes out: a test that passes only then rests on how busy the machine is, which is a fault of the test and says
nothing of the change at hand. A skip that is not allowed and more than a handful of failures get none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"  # of pytest's own cache: a JSON object by test
SECOND_TRIES = 5


def run(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False).returncode


def main(jobs: str) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    status = run("-n", jobs, "-m", "not slow", "--strict-skips")
    if status != pytest.ExitCode.TESTS_FAILED:
        return status
    failed = list(json.loads(LAST_FAILED.read_text(encoding="utf-8"))) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= SECOND_TRIES:
        return status
    print(f"Failed beside other tests, once more alone: {len(failed)}", flush=True)
    status = run(*failed)
    if status == pytest.ExitCode.OK:
        print("\n".join(f"{test} passed only when run alone: it rests on load, mend it." for test in failed))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
