"""Straggler analysis: the authors' published answers on a real job, and small jobs whose answer is known by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.whatif import straggler

DATA = Path(__file__).resolve().parents[3] / "shared" / "traces" / "bytedance-straggler"


def columns(rows: list[tuple[int, int, int, str, int, float, float, int]]) -> dict[str, NDArray[Any]]:
    """Rows are (dp rank, stage, step, kind, sequence, start, end, chunk), in seconds."""
    return {
        "dp_rank": np.array([r[0] for r in rows]),
        "stage": np.array([r[1] for r in rows]),
        "rank": np.array([r[1] * 10 + r[0] for r in rows]),
        "step": np.array([r[2] for r in rows]),
        "optype": np.array([r[3] for r in rows]),
        "seq_id": np.array([r[4] for r in rows]),
        "start_ts": np.array([r[5] for r in rows]),
        "duration": np.array([r[6] - r[5] for r in rows]),
        "mc": np.array([0 if r[7] >= 0 else -1 for r in rows]),
        "gmc": np.array([r[7] for r in rows]),
    }


def two_replicas(slow: float) -> dict[str, NDArray[Any]]:
    """Two data-parallel ranks, one stage; forward takes rank 1 `slow` seconds and rank 0 one; backward takes two."""
    rows = []
    end = slow + 2.0
    for rank, forward in ((0, 1.0), (1, slow)):
        rows += [
            (rank, 0, 7, "forward-compute", 0, 0.0, forward, 0),
            (rank, 0, 7, "backward-compute", 0, forward, forward + 2.0, 0),
            (rank, 0, 7, "grads-reduce-scatter", 0, forward + 2.0, end + 0.5, -1),
            (rank, 0, 7, "optimizer", 0, end + 0.5, end + 0.75, -1),
        ]
    return columns(rows)


def test_waiting_is_not_transfer() -> None:
    """The fast rank waits 2 s in its collective; with equal forwards (mean 2 s) the step is 4.75 s, not 5.75 s."""
    report = straggler.analyse(straggler.from_columns(two_replicas(3.0), "two replicas"))
    assert report.measured_ns == pytest.approx([5.75e9])
    assert report.simulated_ns == pytest.approx([5.75e9])
    assert report.ideal_ns == pytest.approx([4.75e9])
    assert report.slowdown == pytest.approx(5.75 / 4.75)
    assert report.by_dp_rank == pytest.approx({0: 1.0, 1: 5.75 / 4.75})
    assert report.by_kind["forward-compute"] == pytest.approx(5.75 / 4.75)
    assert report.by_kind["grads-reduce-scatter"] == pytest.approx(1.0)
    assert report.worst.removed_share == pytest.approx(1.0), "rank 1 alone explains all of it"


def test_equal_workers_have_no_slowdown() -> None:
    report = straggler.analyse(straggler.from_columns(two_replicas(1.0), "equal"))
    assert report.slowdown == pytest.approx(1.0)
    assert report.worst.removed_share == 0.0


def test_pipeline_of_two_stages() -> None:
    """Stage 1 takes twice as long: 1 s + transfer 0.5 s + 2 s forward, 4 s backward, 0.5 s back, 2 s backward."""
    rows = [
        (0, 0, 0, "forward-compute", 0, 0.0, 1.0, 0),
        (0, 0, 0, "forward-send", 0, 1.0, 1.5, -1),
        (0, 0, 0, "backward-recv", 0, 1.5, 8.0, -1),
        (0, 0, 0, "backward-compute", 0, 8.0, 10.0, 0),
        (0, 0, 0, "optimizer-clip-main-grad", 0, 10.0, 10.25, -1),
        (0, 0, 0, "optimizer", 0, 10.25, 10.5, -1),
        (0, 1, 0, "forward-recv", 0, 0.0, 1.5, -1),
        (0, 1, 0, "forward-compute", 0, 1.5, 3.5, 1),
        (0, 1, 0, "backward-compute", 0, 3.5, 7.5, 1),
        (0, 1, 0, "backward-send", 0, 7.5, 8.0, -1),
        (0, 1, 0, "optimizer-clip-main-grad", 0, 8.0, 10.25, -1),
        (0, 1, 0, "optimizer", 0, 10.25, 10.5, -1),
    ]
    report = straggler.analyse(straggler.from_columns(columns(rows), "pipeline"))
    assert report.simulated_ns == pytest.approx([10.5e9])
    # every forward 1.5 s, every backward 3 s: 1.5 + 0.5 + 1.5 + 3 + 0.5 + 3 + 0.25 + 0.25
    assert report.ideal_ns == pytest.approx([10.5e9])
    # only stage 1 measured: 1.5 + 0.5 + 2 + 4 + 0.5 + 3 + 0.5
    assert report.by_stage[1] == pytest.approx(12.0 / 10.5)
    assert report.by_stage[0] == pytest.approx(9.0 / 10.5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"optype": "forward-computation"}, "kinds that the pipeline model does not know"),
        ({"step": 8}, "operations are missing"),
        ({"duration": -1.0}, "negative or missing time"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    data = two_replicas(3.0)
    for name, value in change.items():
        column = data[name].astype(object)
        column[0] = value
        data[name] = np.array(column.tolist())
    with pytest.raises(straggler.StragglerInputError, match=sentence):
        straggler.from_columns(data, "damaged")


def test_not_a_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="reading parquet needs the extra leadline[parquet]")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(straggler.StragglerInputError, match="cannot be read as parquet"):
        straggler.read(path)


@pytest.fixture(scope="module")
def real_job() -> straggler.StragglerReport:
    pytest.importorskip("pyarrow", reason="reading parquet needs the extra leadline[parquet]")
    if not DATA.is_dir():
        pytest.skip("the published straggler traces are not at ../shared/traces/bytedance-straggler")
    return straggler.analyse(straggler.read(DATA / "trace-ST.parquet"))


def expected(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / name).read_text())
    return loaded


def test_authors_slowdowns(real_job: straggler.StragglerReport) -> None:
    answer = expected("result-ST.json")
    assert real_job.replay_error == pytest.approx(0.0, abs=0.01)
    assert real_job.slowdown == pytest.approx(answer["blocking_slowdown"], rel=0.01)
    assert real_job.launch_slowdown == pytest.approx(answer["launch_slowdown"], rel=0.01)
    for ours, key in (
        (real_job.by_dp_rank, "blocking_decompose_by_dp_rank"),
        (real_job.by_stage, "blocking_decompose_by_stage"),
        (real_job.by_kind, "blocking_decompose_by_optype"),
        (real_job.slowdown_per_step, "blocking_step_slowdown"),
    ):
        assert {str(k): v for k, v in ours.items()} == pytest.approx(answer[key], rel=0.01), key


def test_authors_explanations(real_job: straggler.StragglerReport) -> None:
    for ours, name in ((real_job.last_stage, "ms-ST.json"), (real_job.worst, "mw-ST.json")):
        answer = expected(name)
        assert ours.removed_ns / 1e9 == pytest.approx(answer["trem"], rel=0.01)
        assert ours.added_ns / 1e9 == pytest.approx(answer["tadd"], rel=0.01)
        assert ours.removed_share == pytest.approx(answer["rem"], rel=0.01)
        assert ours.added_share == pytest.approx(answer["add"], rel=0.01)
