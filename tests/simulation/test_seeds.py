"""200 seeds; nightly runs 10,000 (`make simulation`). A failing seed replays with
`PYTHONPATH=. python -m tests.simulation.simulate --seed N`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation import simulate

pytest.importorskip("numpy")
pytestmark = pytest.mark.skipif(
    None in (shutil.which("cc"), shutil.which("g++") or shutil.which("clang++")), reason="no C compiler is installed"
)

ROOT = Path(__file__).parents[2]
BLOCK = 25  # in one process, which imports once
PLANTED = """
from tests.simulation import program, simulate
count = program.Program.count
program.Program.count = lambda self, name, times=1: count(self, name, times + 1)
print(sum("were made" in one for seed in range(4) for one in simulate.in_folder(seed)))
"""


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return simulate.surroundings(tmp_path_factory.mktemp("simulation"))


def ran(surroundings: dict[str, str], *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    environment.update(surroundings, PYTHONPATH=str(ROOT))
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("first", range(0, 200, BLOCK))
def test_what_a_drawn_program_did_is_what_its_profile_says(first: int, surroundings: dict[str, str]) -> None:
    said = ran(surroundings, "-m", "tests.simulation.simulate", "--first", str(first), "--seeds", str(BLOCK))
    assert said == f"{BLOCK} of {BLOCK} seeds are right\n"


def test_a_call_that_is_not_in_the_profile_is_found(surroundings: dict[str, str]) -> None:
    assert int(ran(surroundings, "-c", PLANTED)) > 0
