"""Damaged profiles of JAX and TensorFlow, few in every run and many where asked for; the fuzzer runs in a process of its
own, which limits its memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_fuzzer(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.importers.fuzz", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_damaged_profiles_are_read_or_get_one_sentence(tmp_path: Path) -> None:
    run_fuzzer("--files", "100", "--seconds", "120", "--slowest", "60", "--keep", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_fuzz_many_damaged_profiles(tmp_path: Path, seed: int) -> None:
    run_fuzzer("--seconds", "150", "--seed", str(seed), "--keep", str(tmp_path))
