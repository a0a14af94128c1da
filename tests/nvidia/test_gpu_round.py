"""bench/gpu/round.sh without a GPU: faults that are injected cost one step, and the stages run over the fakes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "gpu"
SCRIPT = FOLDER / "round.sh"
HANGS = "import faulthandler, os, signal, subprocess, sys, time; \
faulthandler.register(signal.SIGUSR2, open(os.environ['ROUND_STACKS'] + f'/{os.getpid()}.txt', 'w'), all_threads=True); \
open(os.environ['ROUND_KEPT'] + '/child', 'w').write(str(subprocess.Popen(['sleep', '1000']).pid)); \
print('{\\\"rounds\\\": 3}', flush=True); time.sleep(1000)"
STAGES = f"""
import sys
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Step:
    name: str
    command: tuple
    limit_s: float
    environment: dict = field(default_factory=dict)
    after_failure_of: str = ""
    ending_s: float = 0
    traced: bool = False

def python(text):
    return (sys.executable, "-S", "-c", text)

STAGES = {{
    "faults": (
        Step("hangs", python({HANGS!r}), 1.0),
        Step("tried after the hang", python("print('{{}}')"), 5, after_failure_of="hangs"),
        Step("dies", python("import os; os.abort()"), 5),
        Step("says no", python("import sys; print('why'); sys.exit(1)"), 5),
        Step("never tried", python("print()"), 5, after_failure_of="tried after the hang"),
    ),
    "works": (Step("works", python("print('{{\\"ok\\": true}}')"), 5),),
    "late": (Step("has no time", python("print()"), 5), ),
}}
SETS = {{"first": ("faults", "works")}}
LIMITS = {{"late": 0.5}}
SLOWER = 1
"""


def results(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "results.jsonl").read_text().splitlines()
    return {result["step"]: result for result in map(json.loads, lines)}


def test_a_step_that_hangs_or_dies_costs_itself_only(tmp_path: Path) -> None:
    """It is asked for its stacks before it is ended with its children; what it had said counts."""
    (tmp_path / "gpu_round_stages.py").write_text(STAGES)
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    command = [sys.executable, "-m", "gpu_round", str(out), str(work), "25", "first", "late"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{FOLDER}"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = results(out)
    assert {name: result["status"] for name, result in found.items()} == {
        "machine": "ok", "hangs": "overran", "tried after the hang": "ok", "dies": "crashed", "says no": "failed",
        "works": "ok", "has no time": "skipped",
    }  # fmt: skip
    assert found["hangs"]["facts"] == {"rounds": 3} and found["works"]["facts"] == {"ok": True}
    assert found["dies"]["why"] == "ended by SIGABRT"
    stacks = (out / "stacks.txt").read_text()
    assert 'File "<string>", line 1 in <module>' in stacks and "thread" in stacks and "sleep 1000" in stacks
    assert "why" in (out / "log.txt").read_text()
    child = Path(f"/proc/{(work / 'kept' / 'child').read_text()}/stat")
    assert not child.exists() or ") Z " in child.read_text()
    with tarfile.open(out / "kept.tar.gz") as archive:
        assert "child" in archive.getnames()
    page = (out / "tables.md").read_text()
    assert "| faults | hangs | 1 | **overran** |" in page and "not done: no time left" in page


def test_a_round_that_is_stopped_leaves_all_steps_before(tmp_path: Path) -> None:
    (tmp_path / "gpu_round_stages.py").write_text(STAGES.replace('"first": ("faults", "works")', '"first": ("works", "long")')
                                                  .replace('"late": (', '"long": (Step("long", python("import time; time.sleep(1000)"), 900),), "late": ('))  # fmt: skip
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    command = [sys.executable, "-m", "gpu_round", str(out), str(work), "1000", "first"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{FOLDER}"}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("works: works: ok"):
                break
        process.kill()
    subprocess.run(["pkill", "-P", str(process.pid)], check=False)
    assert results(out)["works"]["facts"] == {"ok": True}
    assert (out / "log.txt").exists()


def test_whose_time_a_launch_costs_is_told_from_the_turns_of_a_round(tmp_path: Path, monkeypatch: Any) -> None:
    """100 launches a step; each round's own unprofiled turn is the base, so a machine that slows down hides nothing."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_round_pages as made

    facts = {
        "table": "launch cost", "workload": "decode", "group": "client", "steps": 10,
        "modes": ["unprofiled", "kernel records", "Leadline", "Proton"],
        "seconds": {"unprofiled": [1e-3, 2e-3, 4e-3], "Leadline": [1.3e-3, 2.3e-3, 4.4e-3],
                    "kernel records": [1.2e-3, 2.2e-3, 4.2e-3], "Proton": [1.5e-3, 2.5e-3, 4.5e-3]},
        "facts": {"kernel records": {"records": 1200, "steps": 12}}, "errors": {"graph records": "CUPTI answers 1"},
        "enter_leave_s": {},
    }  # fmt: skip
    line = {"stage": "cost decode", "step": "decode client", "status": "ok", "seconds": 1, "facts": facts}
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + '\n{"stage": "cut o')
    page = made.pages(tmp_path)["gpu_launch_cost"]
    assert "100 kernels a step." in page
    assert "| Leadline | 3 | 2.300 | 1.150 | 300 | 300 to 400 | 3.00 |" in page
    assert "Leadline adds 1.00 µs a launch beyond an empty client" in page
    assert "A launch costs 3.00 µs under Leadline, 5.00 under Proton." in page
    assert "| graph records |  | CUPTI answers 1 |" in page


def rehearse(folder: Path, *stages: str, seconds: int) -> dict[str, dict[str, Any]]:
    """The script over the fakes with the package that is installed."""
    bash = shutil.which("bash")
    if bash is None or shutil.which("g++") is None:
        pytest.skip("A rehearsal needs bash and g++.")
    out = folder / "out"
    environment = {**os.environ, "PYTHON": sys.executable, "SECONDS_ALLOWED": str(seconds), "CARRIED": str(folder)}
    command = [bash, str(SCRIPT), "--fakes", str(out), *stages]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return results(out)


@pytest.mark.slow  # a minute and more of runs: both calls of a round
@pytest.mark.timeout(1300)
@pytest.mark.parametrize("stages", ["first", "second"])
def test_a_rehearsal_of_a_call_ends_all_its_steps(tmp_path: Path, stages: str) -> None:
    found = rehearse(tmp_path, stages, seconds=1200)
    bad = {name: result for name, result in found.items() if result["status"] != "ok"}
    assert bad == {}


def test_a_rehearsal_of_one_stage_reads_what_the_fake_device_is_told_to_say(tmp_path: Path) -> None:
    found = rehearse(tmp_path, "instructions", seconds=90)
    plain = found["plain"]["facts"]
    assert plain["ok"] and plain["all counted"] and plain["reasons"].keys() == {"long_scoreboard", "lg_throttle"}
