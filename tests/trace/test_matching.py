"""Launches and work by order: all of real traces whose correlation ids were taken away, and nothing where counts differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline.trace.kineto import read_kineto
from leadline.trace.matching import matched, with_matches
from leadline.trace.source import sources
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Trace

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
REAL = [
    "param-linear-2080ti/linear_kineto.json.gz",
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/nccl_data.json.gz",
]


def without_ids(trace: Trace) -> tuple[Trace, dict[int, int]]:
    """The trace with the streams of launches and no ids; and the launch of every work that had one."""
    events = {name: values.copy() for name, values in trace.events.items()}
    work = np.flatnonzero(np.isin(events["kind"], DEVICE_KINDS) & (events["thread"] < 0) & (events["correlation"] > 0))
    calls = np.flatnonzero(np.isin(events["kind"], CALL_KINDS) & (events["correlation"] > 0))
    call_of = dict(zip(events["correlation"][calls].tolist(), calls.tolist(), strict=True))
    pairs = zip(work.tolist(), events["correlation"][work].tolist(), strict=True)
    truth = {row: call_of[number] for row, number in pairs if number in call_of}
    events["stream"][calls] = -1
    for row, call in truth.items():
        events["stream"][call], events["device"][call] = events["stream"][row], events["device"][row]
    events["correlation"][:] = 0
    return replace(trace, events=events), truth


@pytest.mark.parametrize("name", REAL)
def test_order_finds_every_launch_of_real_traces(name: str) -> None:
    if not (TRACES / name).exists():
        pytest.skip("the shared traces are not here")
    bare, truth = without_ids(read_kineto(sources(TRACES / name)[0]))
    found = with_matches(bare).events
    calls = np.flatnonzero(np.isin(found["kind"], CALL_KINDS) & (found["correlation"] > 0))
    call_of = dict(zip(found["correlation"][calls].tolist(), calls.tolist(), strict=True))
    right = sum(call_of.get(int(found["correlation"][row]), -1) == call for row, call in truth.items())
    assert right == len(truth) > 0


def arrays(*rows: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def test_streams_are_matched_by_themselves_and_unequal_counts_match_nothing() -> None:
    launches = arrays((10, 0, 1), (11, 0, 2), (12, 0, 1), (13, 0, 2))
    work = arrays((20, 0, 2), (21, 0, 1), (22, 0, 1))  # one of stream 2 is missing
    launch, target = matched(*launches, *work)
    assert list(zip(launch.tolist(), target.tolist(), strict=True)) == [(0, 1), (2, 2)]


def test_work_before_its_launch_matches_nothing() -> None:
    assert matched(*arrays((10, 0, 1), (30, 0, 1)), *arrays((20, 0, 1), (25, 0, 1)))[0].size == 0


def test_launches_without_streams_need_a_single_one() -> None:
    unknown = arrays((10, -1, -1), (11, -1, -1))
    assert matched(*unknown, *arrays((20, 0, 7), (21, 0, 7)))[0].tolist() == [0, 1]
    assert matched(*unknown, *arrays((20, 0, 7), (21, 0, 8)))[0].size == 0
