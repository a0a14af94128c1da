"""Each shared trace, imported, against the independent reader: counts, times, phases, busy time and launches."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agree import said
from tests.agree.oracle import Oracle, Sums, raw_events, read

from leadline.profiles.demangle import demangler
from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind
from leadline.trace.importers import import_traces

TRACES = Path(__file__).parents[3] / "shared" / "traces"
SMALL = (
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync.json.gz",
    "hta/cuda_event_sync_multi_stream.json.gz",
    "hta/nccl_data.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
)
LARGE = ("param-linear-2080ti/linear_kineto.json.gz", "hta/rank0_of16_cudagraph.json.gz")
ROUNDING_NS = 2_000
"""By which an end may be cut: begin and duration of older traces are rounded to microseconds."""


@pytest.fixture(
    scope="module",
    params=[*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)],
    ids=lambda name: name,
)
def both(request: pytest.FixtureRequest) -> tuple[Profile, Oracle]:
    path = TRACES / request.param
    if not path.exists():
        pytest.skip("the shared traces are not here")
    ((_, events),) = raw_events(path)
    return import_traces([path]), read(events)


def same(found: Sums, truth: Sums, rounding_ns: int = 0) -> None:
    assert found.count == truth.count
    off = {
        key: (found.total[key], truth.total[key])
        for key in truth.total
        if not 0 <= truth.total[key] - found.total[key] <= rounding_ns * truth.count[key]
    }
    assert not off


def test_operators(both: tuple[Profile, Oracle]) -> None:
    profile, truth = both
    same(said.of_events(profile, EventKind.OPERATOR), truth.operators)
    same(said.of_tree(profile, FrameKind.OPERATOR), truth.operators, ROUNDING_NS)


def test_phases_and_ranges(both: tuple[Profile, Oracle]) -> None:
    profile, truth = both
    same(said.of_events(profile, EventKind.PHASE), truth.phases)
    same(said.of_events(profile, EventKind.REGION), truth.ranges)
    same(said.of_tree(profile, FrameKind.REGION), truth.ranges, ROUNDING_NS)


def test_device_work(both: tuple[Profile, Oracle]) -> None:
    profile, truth = both
    demangle = demangler()
    expected = Sums()
    for (name, device, stream), count in truth.device.count.items():
        key = (demangle(name), device, stream)
        expected.count[key] += count
        expected.total[key] += truth.device.total[name, device, stream]
    same(said.of_device(profile), expected)
    assert {device.index: device.detail["busy_ns"] for device in profile.devices} == truth.busy


def test_launches(both: tuple[Profile, Oracle]) -> None:
    profile, truth = both
    demangle = demangler()
    found, lost = said.launched(profile)
    expected = {(demangle(name), holder): count for (name, holder), count in truth.launched.items()}
    assert lost == truth.unlaunched
    assert dict(found) == expected
