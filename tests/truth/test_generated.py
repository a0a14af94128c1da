"""Programs made by hypothesis, measured in batches: their profiles hold no contradiction and say what the program did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.truth.expected import LEFT_OUT, programs, truth
from tests.truth.invariants import contradictions
from tests.truth.shares import shares_wrong

from leadline.profiles import Profile, open_profile

pytest.importorskip("torch", reason="the programs compute with torch, which is not installed here")

BATCH = 10
BUDGET_S = int(os.environ.get("LEADLINE_GENERATED_S", "600"))
"""What the long form may take before its last batch; a hundred batches where the machine is quick enough."""
_PATIENCE_S = 300
"""A batch takes seconds; one that hangs (in a fork) shall be told from a machine that is busy."""


def measured(batch: list[Any], folder: Path) -> list[Profile]:
    """A profile of every program of the batch, made in one process."""
    for old in folder.glob("*.leadline"):
        old.unlink()
    (folder / "programs.json").write_text(json.dumps(batch))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, str(Path(__file__).with_name("interpreter.py")), "programs.json"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return [open_profile(folder / f"{number}.leadline") for number in range(len(batch))]


def differences(profile: Profile, program: Any) -> list[str]:
    """Where a profile does not say what the program did."""
    wanted = truth(program)
    calls = profile.tree.exclusive("call_time").count
    regions = dict.fromkeys(wanted.regions, 0)
    for node in profile.tree.find(kind="region"):
        regions[node.name] = regions.get(node.name, 0) + int(calls[node.row])
    found = [
        f"region {name} ran {wanted.regions[name]} times, the profile says {said}"
        for name, said in regions.items()
        if wanted.regions[name] != said
    ]
    for operator in ("aten::exp", "ExpBackward0"):
        said = sum(int(calls[node.row]) for node in profile.tree.find(kind="operator", name=operator))
        if said != wanted.work:
            found.append(f"{operator} ran {wanted.work} times, the profile says {said}")
    main = profile.processes[0].node
    balance = main.inclusive("alloc_bytes").sum - main.inclusive("free_bytes").sum
    if balance != wanted.alive:
        found.append(f"{wanted.alive} bytes are alive at the end, the profile says {balance}")
    return found


def check(batch: list[Any], folder: Path) -> None:
    for program, profile in zip(batch, measured(batch, folder), strict=True):
        wrong = [*contradictions(profile), *shares_wrong(profile), *differences(profile, program)]
        assert not wrong, json.dumps(program) + "\n" + "\n".join(wrong)


W = ["work"]
CASES: dict[str, Any] = {
    "work": [W, W],
    "keep": [["keep", 100], W],
    "region": [["region", "a", [W, ["region", "b", [W]], ["region", "a", []]]]],
    "raising": [["raising", "a", [W, ["raising", "b", []]]]],
    "abandoned": [["abandoned", "a", [W]]],
    "suspended": [["suspended", "a", [W], [W, ["region", "b", [W]]]]],
    "suspended twice": [["suspended", "a", [], [W]], ["suspended", "a", [], []]],
    "interleaved": [["region", "a", [["interleaved", ["a", "b", "a"], [W, ["region", "c", [W]]]]]]],
    "threaded": [["threaded", [[W, ["keep", 7]], [["region", "a", [W]]]]]],
    "forked": [["keep", 9], ["forked", [W, ["region", "a", [W]]]], W],
    "fork in a thread": [["threaded", [[["forked", [W, ["region", "a", [W]]]], W]]], W],
    "fork of a fork in a thread": [["region", "a", [["threaded", [[["forked", [["forked", [W]], W]]]]]]]],
    "fork in a region": [["region", "a", [["forked", [W]], W]]],
    "paused": [W, ["paused", [W, ["region", "a", [W]], ["keep", 5]]], W],
    "fork in a pause": [["paused", [["forked", [W]]]], W],
    "pause in a fork": [["forked", [["paused", [W]], W]]],
    "overlap": [["overlap", "a", "b", [W], [W], [W]]],
    "stacked": [["stacked", ["a", "b"], [W]]],
    "region around a pause": [["region", "a", [W, ["paused", [W]], W]]],
}


@pytest.fixture(scope="module")
def of_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Profile]:
    folder = tmp_path_factory.mktemp("cases")
    return dict(zip(CASES, measured(list(CASES.values()), folder), strict=True))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=LEFT_OUT[name]) if name in LEFT_OUT else ())
        for name in CASES
    ],
)
def test_each_way_of_nesting_is_told_truly(name: str, of_cases: dict[str, Profile]) -> None:
    profile = of_cases[name]
    wrong = [*contradictions(profile), *shares_wrong(profile), *differences(profile, CASES[name])]
    assert not wrong, "\n".join(wrong)


# a failing program is printed; shrinking would run whole batches again and again
many = settings(
    deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, phases=[Phase.explicit, Phase.generate]
)


@settings(many, max_examples=3)
@given(batch=st.lists(programs, min_size=BATCH, max_size=BATCH))
def test_generated_programs_are_told_truly(batch: list[Any], tmp_path: Path) -> None:
    check(batch, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(BUDGET_S + 2 * _PATIENCE_S)
def test_many_generated_programs_are_told_truly(tmp_path: Path) -> None:
    """As many batches as there is time for; how many that were is printed, and two at least must have been."""
    begin = time.monotonic()
    seen = 0

    @settings(many, max_examples=100)
    @given(batch=st.lists(programs, min_size=BATCH, max_size=BATCH))
    def within_the_budget(batch: list[Any]) -> None:
        nonlocal seen
        if time.monotonic() - begin < BUDGET_S:
            check(batch, tmp_path)
            seen += 1

    within_the_budget()
    print(f"{seen * BATCH} generated programs in {time.monotonic() - begin:.0f} s")
    assert seen >= 2
