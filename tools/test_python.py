"""The Python tests as continuous integration runs them: `test_python.py JOBS [--durations-file]`.

Files that took longest come first (tests/durations.json), each on one worker, so that what its tests share is made
once. A few failures are tried again alone, and those that tests/flaky.json does not
list with an owner and a reason are named: they rest on load, or on the test before them, and want mending.
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
SECOND_TRIES = 40
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
    if not 0 < len(failed) <= SECOND_TRIES:
        return status
    strange = [test for test in failed if test.partition("[")[0] not in listed]
    print(f"Failed beside other tests, once more alone: {len(failed)}; not in {FLAKY.name}: {strange}", flush=True)
    status = run(*failed)
    if status == pytest.ExitCode.OK:
        print("\n".join(f"{test} passed only when run alone." for test in failed))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
