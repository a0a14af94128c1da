"""bench/gpu/check_amd.sh without a GPU: a rehearsal over the fakes, and that its checks find what is wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "gpu"


@pytest.mark.slow  # a minute of benchmarks, whose parts other tests run over the same fakes
@pytest.mark.timeout(600)
def test_a_rehearsal_over_the_fakes_passes_and_a_wrong_truth_does_not(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None or shutil.which("g++") is None:
        pytest.skip("The rehearsal needs bash and g++.")
    package = Path(importlib.util.find_spec("leadline").origin).parents[1]  # type: ignore[union-attr, arg-type]
    out, work = tmp_path / "out", tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PYTHON": sys.executable, "BUILT": str(package), "WORK": str(work)}
    command = [bash, str(FOLDER / "check_amd.sh"), "--fakes", str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((out / "results.json").read_text())
    assert len(results) == 10 and all(one["ok"] for one in results.values())
    assert (out / "recording").stat().st_size > 0 and (out / "recording.folded").is_file()
    assert any(one["title"] == "AMD GPU" for one in json.loads((out / "doctor.json").read_text())["sections"])

    truth = json.loads((work / "truth.json").read_text())
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({**truth, "forward": 7, "block": 64, "bytes": 1}))
    judge = [sys.executable, str(FOLDER / "amd_checks.py"), str(out), str(wrong)]
    assert subprocess.run(judge, capture_output=True, check=False, timeout=60).returncode == 1
    failed = {name for name, one in json.loads((out / "results.json").read_text()).items() if not one["ok"]}
    assert failed == {"launches", "shapes", "copies"}


def test_it_says_how_it_is_used() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("The script is for bash.")
    done = subprocess.run([bash, str(FOLDER / "check_amd.sh")], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage" in done.stderr
