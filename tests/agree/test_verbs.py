"""What several verbs say of one trace: equal wherever two state the same, parts within wholes, bounds of physics."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stdout
from functools import lru_cache
from typing import Any

import pytest
from tests.agree import said
from tests.agree.test_traces import SMALL, TRACES

from leadline.cli.main import main
from leadline.schema import EventKind
from leadline.trace.importers import import_traces

STEPS = (
    "hta/nccl_data.json.gz",
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
)
WHATIF_OFF = 0.01
"""whatif replays what happened, so its step may differ by what a replay does."""


@lru_cache(maxsize=64)
def told(verb: str, name: str, *more: str) -> str:
    path = str(TRACES / name)
    with redirect_stdout(io.StringIO()) as out:
        assert main([verb, path, *more]) in (0, 1)
    return out.getvalue()


def as_json(verb: str, name: str, *more: str) -> Any:
    return json.loads(told(verb, name, *(more or ("--format", "json"))))


SAMPLE = ("hta/nccl_data.json.gz", "hta/alexnet_cuda_sync.json.gz", "hta/cuda_event_sync.json.gz")
"""What runs with every change; the others are slow."""


PHASES = tuple(name for name in SMALL if not name.startswith(("hta/alexnet", "hta/cuda_event")))
"""The others record none."""


def sampled(names: tuple[str, ...]) -> list[Any]:
    return [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(params=sampled(SMALL), ids=lambda name: name)
def trace(request: pytest.FixtureRequest) -> str:
    if not (TRACES / request.param).exists():
        pytest.skip("the shared traces are not here")
    return str(request.param)


@pytest.mark.parametrize("trace", sampled(STEPS), indirect=True)
def test_a_step_is_equally_long_everywhere(trace: str) -> None:
    summary = as_json("summary", trace, "--json")["steps"]
    analyzed, verdict = as_json("analyze", trace), as_json("report", trace)["verdict"]["account"]
    assert summary["measured"] == analyzed["steps"] == verdict["steps"]
    assert verdict["wall_ns"] == analyzed["step_ns"] == pytest.approx(summary["mean_ns"], abs=1)
    assert as_json("whatif", trace)["measured_ns"] == pytest.approx(summary["mean_ns"], rel=WHATIF_OFF)


def test_a_file_is_not_different_from_itself(trace: str) -> None:
    with redirect_stdout(io.StringIO()) as out:
        assert main(["diff", str(TRACES / trace), "--", str(TRACES / trace), "--format", "json"]) == 0
    found = json.loads(out.getvalue())
    assert found["changes"] == found["differences"] == found["renamed"] == found["moved"] == []
    for name in ("step", "work", "gpu"):
        assert found[name] is None or found[name]["a"] == found[name]["b"]


def test_an_account_of_a_step_adds_up(trace: str) -> None:
    account = as_json("report", trace)["verdict"]["account"]
    parts = sum(part["ns"] for part in account["parts"] if part["lane"] == "thread")
    assert parts <= account["wall_ns"] * 1.0001
    assert all(0 <= part["share"] <= 1.0001 for part in account["parts"])


def test_no_gain_is_more_than_the_step(trace: str) -> None:
    for finding in as_json("analyze", trace)["findings"]:
        gain = finding["gain"]
        if gain and gain.get("per") == "step":
            assert 0 <= gain["low_ns"] <= gain["expected_ns"] <= gain["high_ns"] <= gain["of_ns"]
    found = as_json("whatif", trace)
    for scenario in found["scenarios"]:
        assert scenario["low_ns"] <= scenario["predicted_ns"] <= scenario["high_ns"]


def test_device_time_is_the_same_in_report_statistics_and_tables(trace: str) -> None:
    report = as_json("report", trace)
    profile = import_traces([TRACES / trace])
    work = said.of_device(profile)
    rows = list(csv.DictReader(io.StringIO(told("stats", trace, "--by", "kernel", "--csv", "--top", "100000"))))
    assert (
        sum(int(row["total_ns"]) for row in rows)
        == work.total.total()
        == report["totals"].get("gpu_time", {"sum": 0})["sum"]
    )
    assert sum(int(row["occurrences"]) for row in rows) == work.count.total()
    for device in report["gpu"]["devices"] if report["gpu"] else ():
        busy = device["busy"]
        assert busy["busy_ns"] <= device["work_ns"]
        assert busy["busy_ns"] + busy["idle_ns"] <= as_json("info", trace, "--json")["wall_ns"]
        assert max(busy["compute_ns"], busy["communication_ns"]) <= busy["busy_ns"]


def test_operators_are_the_same_in_report_statistics_and_tables(trace: str) -> None:
    profile = import_traces([TRACES / trace])
    events = said.of_events(profile, EventKind.OPERATOR)
    rows = list(csv.DictReader(io.StringIO(told("stats", trace, "--by", "operator", "--csv", "--top", "100000"))))
    assert {row["operator"]: int(row["occurrences"]) for row in rows} == dict(events.count)
    assert {row["operator"]: int(row["total_ns"]) for row in rows} == dict(events.total)
    for row in as_json("report", trace)["operators"]:
        assert row["count"] == events.count[row["name"]], row["name"]


@pytest.mark.parametrize("trace", sampled(PHASES), indirect=True)
def test_phases_are_the_source_s_in_statistics(trace: str) -> None:
    events = said.of_events(import_traces([TRACES / trace]), EventKind.PHASE)
    assert events.total
    rows = list(csv.DictReader(io.StringIO(told("stats", trace, "--by", "stage", "--csv", "--top", "1000"))))
    found = {row["stage"]: int(row["total_ns"]) for row in rows}
    for phase, total in events.total.items():  # within steps, so no more than in all
        assert found.get(phase, 0) <= total, phase
