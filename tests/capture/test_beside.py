"""The overhead limit of long runs: when it begins, with a clock that is given; what becomes of its thread over a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from leadline._own_thread import Flag
from leadline.capture.background import Background
from leadline.capture.budget import Budget, BudgetKeeper, Switch
from leadline.capture.config import LONG_RUN_S, USUAL_BUDGET, Options
from leadline.profiles import open_profile

SECOND = 1_000_000_000


class Program:
    """Time that passes only while it is waited for, and what measuring costs meanwhile."""

    def __init__(self, cost: float, ends_s: float) -> None:
        self.now_s, self.cost_s, self.ends_s = 0.0, 0.0, ends_s
        self.cost = cost
        self.measured = True
        self.switches: list[tuple[float, bool]] = []

    def wait(self, ended: Flag, seconds: float) -> bool:
        self.now_s += seconds
        self.cost_s += self.cost * seconds if self.measured else 0.0
        return self.now_s >= self.ends_s

    def switch(self, on: bool) -> None:
        self.measured = on
        self.switches.append((self.now_s, on))


def kept(program: Program, after_s: float = LONG_RUN_S) -> None:
    """Runs it under the usual limit."""
    limit = Budget(USUAL_BUDGET, [Switch("all measuring", lambda: program.switch(False), lambda: program.switch(True))])
    keeper = BudgetKeeper(
        limit,
        lambda: int(program.cost_s * SECOND),
        lambda told: None,
        wait=program.wait,
        clock_ns=lambda: int(program.now_s * SECOND),
    )
    beside = Background(after_s, lambda: keeper, wait=program.wait, clock=lambda: program.now_s)
    beside.start()
    deadline = time.monotonic() + 20
    while program.now_s < program.ends_s and time.monotonic() < deadline:
        os.sched_yield()
    beside.stop()


def test_nothing_rests_in_the_first_ten_minutes_and_one_percent_holds_in_what_follows() -> None:
    program = Program(cost=0.2, ends_s=4 * 3600)
    kept(program)
    assert program.switches[0][0] >= LONG_RUN_S == 600
    late_cost_s = program.cost_s - 0.2 * LONG_RUN_S
    assert 0.5 < 100 * late_cost_s / (program.ends_s - LONG_RUN_S) < 1.1
    assert program.measured  # what rested goes on at the end


def test_a_run_of_nine_minutes_is_measured_whole_whatever_it_costs() -> None:
    program = Program(cost=0.5, ends_s=540)
    kept(program)
    assert program.switches == []


def test_cheap_measuring_goes_on_for_ever() -> None:
    program = Program(cost=0.008, ends_s=48 * 3600)
    kept(program)
    assert program.switches == []


def test_the_limit_nobody_asked_for_changes_nothing_else() -> None:
    usual = Options(budget=USUAL_BUDGET, budget_after_s=LONG_RUN_S)
    assert usual.instruction_budget == Options().instruction_budget == 2.0
    assert Options(budget=5.0).instruction_budget == 5.0
    assert "overhead limit 1 % after 10 min" in usual.mode()
    assert "overhead limit 5 %" in Options(budget=5.0).mode() and "limit" not in Options().mode()


FORKS = """
import os, time
def threads():
    names = []
    for tid in os.listdir("/proc/self/task"):
        try: names.append(open(f"/proc/self/task/{tid}/comm").read().strip())
        except OSError: pass
    return names.count("leadline-python")
def wait_for(count):
    end = time.monotonic() + 5
    while threads() != count and time.monotonic() < end: os.sched_yield()
    assert threads() == count, threads()
wait_for(1)
for _ in range(20):
    if (pid := os.fork()) == 0:
        wait_for(1)  # the child has a limit of its own
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
wait_for(1)
"""


def test_its_thread_rests_over_a_fork_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FORKS)
    command = [sys.executable, "-m", "leadline", "run", "-o", "x.leadline", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "overhead limit 1 % after 10 min" in done.stderr.splitlines()[0]
    profile = open_profile(tmp_path / "x.leadline")
    assert "leadline-python" not in {one.name for one in profile.threads}
    (parent,) = [one for one in profile.meta["processes"] if one["pid"] == profile.processes[0].pid]
    assert "budget" not in parent
