"""Verdicts of traces that this project did not write: all of it is found out, what is no name for a reader is not
said, and no name twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline
from leadline.analysis.analyze import analyze

TRACES = Path(__file__).parents[3] / "shared" / "traces"
NAMES = (
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "param-linear-2080ti/linear_kineto.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "hta/nccl_data.json.gz",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync_multi_stream.json.gz",
    "hta/rank0_of16_cudagraph.json.gz",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_place_without_a_name_ends_no_sentence(name):
    trace = TRACES / name
    if not trace.exists():
        pytest.skip(f"Needs {name} of the shared traces.")
    profile = leadline.open(trace)
    assert not analyze(profile).failed
    said = profile.verdict
    assert "could not be found out" not in said.trust
    for sentence in (said.sentence, *said.because):
        assert not sentence.endswith((":", ": root")) and " root in " not in sentence
        _, _, place = sentence.rpartition(": ")
        first, inside, second = place.partition(" in ")
        assert not inside or first.strip() != second.strip()
