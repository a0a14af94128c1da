"""`make nightly`: every job that it lists can be started."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JOBS = re.search(r"^NIGHTLY := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()  # type: ignore[index]


@pytest.mark.parametrize("job", JOBS)
def test_the_job_exists_and_is_explained(job: str) -> None:
    if shutil.which("make") is None:
        pytest.fail("make is not here")
    planned = subprocess.run(["make", "-n", job], cwd=ROOT, capture_output=True, text=True, check=False)
    assert planned.returncode == 0, planned.stderr
    explained = "\n".join(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("#   make"))
    assert re.search(rf"\b{job}\b", explained)
    for script in set(re.findall(r"\b((?:tools|bench)/[\w/.]+\.(?:py|sh))", planned.stdout)):
        assert (ROOT / script).exists()
