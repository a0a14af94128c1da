"""`leadline run --plan` beside a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leadline._own_cost import cost_ns
from leadline.capture.config import Options
from leadline.capture.forecast import PATH_BYTES, USUAL_PATHS, Forecast
from leadline.cli.plan import text
from leadline.profiles import open_profile

PROGRAM = f"""
import leadline
for number in range(200_000):
    with leadline.region(f"path {{number % {USUAL_PATHS}}}"):
        pass
"""
FORECAST = """
import json
from leadline.capture.config import Options
from leadline.capture.forecast import forecast
print(json.dumps(vars(forecast(Options(cpu_sample=29.0, wait=11.0)))))
"""


def leadline(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "leadline", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_stays_below_its_plan(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-c", FORECAST], capture_output=True, text=True, check=True, timeout=60)
    planned = Forecast(**json.loads(done.stdout))
    leadline(tmp_path, "run", "-q", "-o", "x.leadline", "program.py")
    profile = open_profile(tmp_path / "x.leadline")
    cost = profile.meta["processes"][0]["cost"]
    assert len(profile.tree) >= USUAL_PATHS
    assert cost["held_bytes"] <= planned.fixed_bytes + len(profile.tree) * PATH_BYTES
    assert cost["events"] >= 200_000
    # times of two processes on a machine that does other things
    assert cost_ns({**cost, "flush_ns": 0}, shapes=False) / cost["events"] <= 5 * planned.event_ns
    assert 0 < planned.sample_ns < 5e6 and 0 < planned.segment_ns < 5e8
    assert planned.samples_share == pytest.approx(29 * planned.sample_ns / 1e9)


def test_a_plan_runs_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("open('ran', 'w')")
    said = leadline(tmp_path, "run", "--plan", "--trace", "steps=5", "program.py")
    assert "nothing was run" in said and "trace window" in said and "122 MiB" in said
    assert "limit         none; --budget 1% sets one" in said
    assert [one.name for one in tmp_path.iterdir()] == ["program.py"]
    said = leadline(tmp_path, "run", "--plan", "program.py")
    assert "1 % of wall time after 10 min (--budget)" in said and "trace window" not in said
    assert len(said.splitlines()) <= 24 and max(map(len, said.splitlines())) <= 120


def test_what_is_not_asked_for_is_not_planned() -> None:
    found = Forecast(1, 2, 3, 0, 0, 100.0, 0.0, 0.0, 0.0, 1e6, 2e-4)
    said = text(found, Options(budget=2.0))
    assert "CPU samples" not in said and "waits" not in said and "2 % of wall time (--budget)" in said
    assert "1.0 % of a thread's time at 100,000 a second" in said
