"""A cost budget that holds itself: in simulated time, and in a real program."""

import subprocess
import sys
from pathlib import Path

import pytest

from leadline.capture.budget import ORDER, Budget, Switch, parse_percent
from leadline.capture.config import Options
from leadline.capture.providers.cpu import CpuProvider
from leadline.profiles import open_profile
from leadline.report import ReportOptions, build_report

SECOND = 1_000_000_000


def simulated(costs: dict[str, float], percent: float, seconds: int = 2000) -> tuple[Budget, float, list[str]]:
    """`costs`: percent of wall time of each source while it does not rest. The mean cost, and what happened."""
    on = dict.fromkeys(costs, True)
    said: list[str] = []

    def switch(name: str) -> Switch:
        def turn(way: bool) -> None:
            on[name] = way
            said.append(f"{name} {'on' if way else 'off'}")

        return Switch(name, lambda: turn(False), lambda: turn(True))

    budget = Budget(percent, [switch(name) for name in costs])
    spent = 0.0
    for now in range(2 * seconds):
        cost = sum(value for name, value in costs.items() if on[name]) / 100 * SECOND / 2
        spent += cost
        budget.spend(cost, SECOND // 2, now * SECOND // 2)
    return budget, 100 * spent / (seconds * SECOND), said


@pytest.mark.parametrize("cost", [1.5, 5.0, 30.0, 400.0])
def test_the_mean_stays_at_the_budget_whatever_events_cost(cost: float) -> None:
    budget, mean, _ = simulated({"all measuring": cost}, 1.0)
    assert 0.5 < mean < 1.0 + 0.5 * cost / 2000 + 0.02
    told = budget.facts(2000 * SECOND)
    rested = told["off_ns"]["all measuring"] / (2000 * SECOND)
    assert rested == pytest.approx(1 - mean / cost, abs=0.02)
    assert len(told["switches"]) <= 200 <= max(told["times"], 200)


def test_cheap_measuring_is_left_alone() -> None:
    budget, mean, said = simulated({"all measuring": 0.9}, 1.0)
    assert said == [] and budget.facts(0)["off_ns"] == {} and mean == pytest.approx(0.9)


def test_sources_rest_in_the_stated_order_and_return_in_reverse() -> None:
    _, mean, said = simulated({"CPU samples": 2.0, "all measuring": 0.5}, 1.0)
    assert mean < 1.02
    assert set(said) == {"CPU samples off", "CPU samples on"}  # the rest fits into the budget
    _, _, said = simulated({"CPU samples": 2.0, "all measuring": 3.0}, 1.0)
    assert said[:4] == ["CPU samples off", "all measuring off", "all measuring on", "all measuring off"]
    assert list(ORDER) == ["CPU samples", "shapes", "all measuring"]


def test_everything_goes_on_at_the_end() -> None:
    said: list[str] = []
    budget = Budget(1.0, [Switch("a", lambda: said.append("off"), lambda: said.append("on"))])
    budget.spend(SECOND, SECOND // 2, 1)
    budget.close(5)
    assert said == ["off", "on"] and budget.facts(9)["off_ns"] == {"a": 4}


@pytest.mark.parametrize(("text", "value"), [("1%", 1.0), (" 0.5 %", 0.5)])
def test_percent(text: str, value: float) -> None:
    assert parse_percent(text) == value


@pytest.mark.parametrize("text", ["1", "0%", "101%", "%", "1%x", "nan%"])
def test_no_percent(text: str) -> None:
    with pytest.raises(ValueError):
        parse_percent(text)


def test_a_program_of_nothing_but_events_is_measured_for_a_part_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import leadline, time\n"
        "end = time.monotonic() + 4\n"
        "while time.monotonic() < end:\n"
        "    for _ in range(1000):\n"
        "        with leadline.region('event'): pass\n"
    )
    out = tmp_path / "out.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-q", "--budget", "0.1%", "-o", str(out), "program.py"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    profile = open_profile(out)
    (record,) = profile.meta["processes"]
    assert record["budget"]["off_ns"]["all measuring"] > 0
    assert record["paused_ns"] > SECOND
    (sentence,) = [one for one in build_report(profile, ReportOptions(), "").meta.estimates if "overhead" in one]
    assert sentence.startswith("To keep the overhead below 0.1% of the run, Leadline paused: all measuring for ")


def test_samples_that_go_on_after_a_rest_are_what_was_asked_for() -> None:
    class Native:
        def __init__(self) -> None:
            self.started: list[dict[str, object]] = []

        def provider_start(self, _name: str, wanted: dict[str, object]) -> dict[str, object]:
            self.started.append(wanted)
            return {"ok": True, "message": ""}

        def provider_stop(self, _name: str) -> dict[str, object]:
            return {"ok": True, "message": ""}

        def cpu_thread_begins(self) -> None:
            """No thread begins here."""

    native = Native()
    options = Options(cpu_sample=50, wait=20, native="all", counters=("page-faults",))
    provider = CpuProvider(native, options)
    provider.start()
    provider.pause()
    provider.resume()
    provider.stop()
    first, again = native.started
    assert first == again == {"hz": 50, "native": "all", "counters": ["page-faults"], "wait_hz": 20}


def test_shapes_are_among_what_may_rest_before_torch_is_imported() -> None:
    code = (
        "from leadline.capture.providers import CanPause, create_providers\n"
        "from leadline.capture.config import Options\n"
        "from leadline.capture.native import load_native\n"
        "made = create_providers(load_native(), Options(budget=1.0, shapes=True), lambda: None)\n"
        "print(*sorted(one.pausable for one in made if isinstance(one, CanPause) and one.pausable))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["shapes"]
