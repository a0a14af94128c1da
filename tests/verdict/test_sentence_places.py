"""Places in sentences: what is no name for a reader is not said, and no name twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline

TRACES = Path(__file__).parents[3] / "shared" / "traces"


@pytest.mark.parametrize(
    "name", ["param-resnet-2080ti/resnet_kineto.json.gz", "param-linear-2080ti/linear_kineto.json.gz"]
)
def test_a_place_without_a_name_ends_no_sentence(name):
    trace = TRACES / name
    if not trace.exists():
        pytest.skip(f"Needs {name} of the shared traces.")
    said = leadline.open(trace).verdict
    for sentence in (said.sentence, *said.because):
        assert not sentence.endswith((":", ": root")) and " root in " not in sentence
        _, _, place = sentence.rpartition(": ")
        first, inside, second = place.partition(" in ")
        assert not inside or first.strip() != second.strip()
