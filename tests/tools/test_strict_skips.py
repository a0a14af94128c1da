"""A skip that nobody allowed fails a strict run, with and without worker processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import may_skip
from tests.conftest import FORBIDDEN_SKIP

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(folder), str(folder), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


WAYS_TO_SKIP = {
    "whole_file": "import pytest\npytest.importorskip('no_such_package', reason='it is not installed')\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason='it is not installed')\ndef test_a(): pass\n",
    "call": "import pytest\ndef test_a(): pytest.skip('it is not installed')\n",
}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "workers"])
def test_a_skip_that_is_not_listed_fails_a_strict_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    for way, program in WAYS_TO_SKIP.items():
        (tmp_path / f"test_skips_by_{way}.py").write_text(program)
    (tmp_path / "test_passes.py").write_text("def test_a(): assert 1 + 1 == 2\n")
    assert run(tmp_path, *workers).returncode == 0
    strict = run(tmp_path, "--strict-skips", *workers)
    assert strict.returncode == FORBIDDEN_SKIP, strict.stdout
    for way in WAYS_TO_SKIP:
        assert any(
            f"test_skips_by_{way}.py" in line and "may not skip here (it is not installed)" in line
            for line in strict.stdout.splitlines()
        ), strict.stdout


def test_a_folder_that_runs_nothing_fails_a_strict_run(tmp_path: Path) -> None:
    (tmp_path / "test_passes.py").write_text("def test_a(): assert 1 + 1 == 2\n")
    assert "tests/torch: no test passed" in run(tmp_path, "--strict-skips").stdout


def test_only_the_listed_reason_at_the_listed_place_is_excused() -> None:
    reason = "Triton is not installed here; `make test-triton` downloads it and runs this."
    assert may_skip.excuse("tests/nvidia/test_triton.py::test_a", reason)
    assert not may_skip.excuse("tests/torch/test_paths.py::test_a", reason)
    assert not may_skip.excuse("tests/nvidia/test_triton.py::test_a", "torch is not installed here")


def test_programs_start_with_the_signals_defaults_also_below_nohup(tmp_path: Path) -> None:
    (tmp_path / "test_child.py").write_text(
        "import subprocess, sys\n"
        "def test_a():\n"
        "    program = 'import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, signal.getsignal(signal.SIGINT))'\n"
        "    output = subprocess.check_output([sys.executable, '-c', program], text=True)\n"
        "    assert output.startswith('True') and 'default_int_handler' in output, output\n"
    )
    program = "import signal, sys, os; [signal.signal(n, signal.SIG_IGN) for n in (1, 2)]; os.execv(sys.argv[1], sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        program,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-c",
        os.devnull,
    ]
    command += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
