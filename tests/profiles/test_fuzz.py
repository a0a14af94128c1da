"""The fuzzer, short in every run and long where asked for. It runs in a process of its own, which limits its memory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_fuzzer(*arguments: str) -> None:
    command = [sys.executable, "-W", "ignore:Duplicate name", "-m", "tests.profiles.fuzz", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hostile_files_open_or_get_one_sentence(tmp_path: Path) -> None:
    run_fuzzer("--files", "300", "--seconds", "120", "--keep", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_fuzz_many_hostile_files(tmp_path: Path, seed: int) -> None:
    run_fuzzer("--seconds", "150", "--seed", str(seed), "--keep", str(tmp_path))


def test_the_memory_limit_of_the_fuzzer_works() -> None:
    program = "from tests.fuzzing import limit_memory; limit_memory(); bytearray(700 << 20)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr
