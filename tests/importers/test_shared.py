"""Traces that this project did not write, through the importer; they skip where they are not beside it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.truth.invariants import contradictions

from leadline import whatif
from leadline.analysis.case import Case
from leadline.trace.importers import import_traces
from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.tables import DEVICE_KINDS, Kind

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
FILES = (
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
    "hta/nccl_data.json.gz",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync_multi_stream.json.gz",
    "param-dlrm-8rank-v100/dlrm_kineto.tar.gz",
)


@pytest.fixture
def traces() -> Path:
    if not TRACES.is_dir():
        pytest.skip("the reference traces are not beside the repository (../shared/traces)")
    return TRACES


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_the_trace_is_lost_or_counted_twice(traces: Path, name: str) -> None:
    read = [read_kineto(source) for source in sources(traces / name)]
    profile = import_traces([traces / name])
    assert contradictions(profile) == []
    device = [trace.of_kind(*DEVICE_KINDS) for trace in read]
    recorded = sum(int(trace.events["duration_ns"][rows].sum()) for trace, rows in zip(read, device, strict=True))
    assert int(profile.tree.exclusive("gpu_time").sum.sum()) == recorded
    calls: Counter[str] = Counter()
    for trace in read:
        calls.update(trace.name(row) for row in trace.of_kind(Kind.OPERATOR).tolist())
    found = {
        text: sum(int(node.exclusive("call_time").count) for node in profile.tree.find(kind="operator", name=text))
        for text in calls
        if not set(text) & set("*?[")
    }
    assert found == {text: count for text, count in calls.items() if text in found}
    unlaunched = sum(loss.count for loss in profile.losses if str(loss.kind) == "gpu_record_unattributed")
    for trace, rows in zip(read, device, strict=True):
        launches = trace.events["correlation"][(trace.events["thread"] >= 0)]
        unlaunched -= int((~np.isin(trace.events["correlation"][rows], launches[launches != 0])).sum())
    assert unlaunched == 0


@pytest.mark.parametrize("name", FILES[1:3])
def test_predictions_from_the_profile_are_those_from_the_trace(traces: Path, name: str) -> None:
    ours, theirs = (
        whatif.rank(graph) for graph in (whatif.graph_of(import_traces([traces / name])), whatif.load(traces / name))
    )
    expected = {one.title: one.predicted_ns for one in theirs.scenarios}
    assert {one.title: one.predicted_ns for one in ours.scenarios} == pytest.approx(expected, rel=0.03)


def test_findings_of_a_trace_without_lines_name_what_is_wrong(traces: Path) -> None:
    """A step that the CPU bounds: the GPU works 55 of 222 ms. Gradients are exchanged below AccumulateGrad, which is
    no hot spot for that."""
    profile = import_traces([traces / "hta/nccl_data.json.gz"])
    found = profile.findings().findings
    assert found[0].rule == "cpu_latency" and "idles 75 %" in found[0].title
    assert not [one for one in found if "AccumulateGrad" in one.title]
    loop = Case(profile).loop
    assert loop.step_ns == pytest.approx(whatif.rank(whatif.graph_of(profile)).measured_ns, rel=0.03)
