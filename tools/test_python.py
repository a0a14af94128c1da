"""The Python tests as continuous integration runs them: `test_python.py JOBS [--durations-file]`.

Files that took longest come first (tests/durations.json), each on one worker, so that what its tests share is made
once. A failure fails the run, unless tests/flaky.json lists the test with an owner and a reason: then it is tried
again alone.
--durations-file: write tests/durations.json anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"  # of pytest's own cache: a JSON object by test
FLAKY = ROOT / "tests" / "flaky.json"


def run(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False).returncode


def flaky() -> set[str]:
    """Tests that may fail beside others: a row a test, with `owner` and `reason`. ValueError where one lacks them."""
    rows: dict[str, dict[str, str]] = json.loads(FLAKY.read_text(encoding="utf-8"))
    for test, row in rows.items():
        if not row.get("owner") or not row.get("reason"):
            raise ValueError(f"{FLAKY.name}: {test} needs an owner and a reason.")
    return set(rows)


def main(jobs: str, *more: str) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    status = run("-n", jobs, "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not slow", "--strict-skips", *more)
    if status != pytest.ExitCode.TESTS_FAILED:
        return status
    failed = list(json.loads(LAST_FAILED.read_text(encoding="utf-8"))) if LAST_FAILED.exists() else []
    listed = flaky()
    strange = [test for test in failed if test.partition("[")[0] not in listed]
    if strange or not failed:
        print("\n".join(f"{test} failed, and {FLAKY.name} does not list it." for test in strange), flush=True)
        return status
    print(f"Failed beside other tests, once more alone: {failed}", flush=True)
    status = run(*failed)
    if status == pytest.ExitCode.OK:
        print("\n".join(f"{test} passed only when run alone." for test in failed))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
