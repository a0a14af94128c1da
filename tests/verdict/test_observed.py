"""What a supervisor sees of a program from outside: bounded series, and segments kept at equal intervals."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from leadline.capture import observe, snapshots
from leadline.capture.observe import Observer
from leadline.capture.snapshots import Snapshots, snapshots_of


def process(proc: Path, pid: int, children: str = "", ran: int = 0, queued: int = 0) -> None:
    task = proc / str(pid) / "task" / str(pid)
    task.mkdir(parents=True, exist_ok=True)
    (task / "children").write_text(children)
    (task / "schedstat").write_text(f"{ran} {queued} 7\n")
    (proc / str(pid) / "statm").write_text("100 10 5 1 0 9 0\n")


def test_time_in_line_is_read_for_every_descendant_and_the_series_is_bounded(tmp_path: Path):
    process(tmp_path, 1, "2")
    process(tmp_path, 2, "3")
    process(tmp_path, 3)
    seen = Observer(1, tmp_path)
    for number in range(500):
        process(tmp_path, 2, "3", ran=number, queued=4 * number)
        seen.poll()
    records = {one["pid"]: one for one in seen.observed()}
    assert set(records) == {2, 3}
    assert len(records[2]["ran_ns"]) <= 33
    assert records[2]["ran_ns"][0] == 0
    assert (records[2]["ran_ns"][-1], records[2]["queued_ns"][-1]) == (499, 4 * 499)
    assert len({len(records[2][name]) for name in ("time_s", "ran_ns", "queued_ns", "resident_bytes", "threads")}) == 1


def test_a_process_that_is_gone_costs_nothing_but_itself(tmp_path: Path):
    process(tmp_path, 1, "2 99")
    process(tmp_path, 2, ran=5)
    seen = Observer(1, tmp_path)
    seen.poll()
    assert [one["pid"] for one in seen.observed()] == [2]


@pytest.mark.parametrize("seconds", [9, 40, 500, 5000])
def test_segments_are_kept_at_equal_intervals_and_eight_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
):
    now = [0.0]
    monkeypatch.setattr(snapshots.time, "monotonic", lambda: now[0])
    segment = tmp_path / "5-1-m.segment"
    kept = Snapshots(tmp_path)
    for second in range(1, seconds):
        now[0] = float(second)
        fresh = tmp_path / "new"
        fresh.write_text(str(second))
        fresh.rename(segment)
        kept.poll()
    at = [int(path.read_text()) for path in snapshots_of(segment)]
    assert 4 <= len(at) <= 8
    steps = {later - earlier for earlier, later in itertools.pairwise(at)}
    assert len(steps) == 1
    assert at[0] <= seconds / 3
    assert seconds - at[-1] <= 2 * max(steps)


def test_a_segment_that_was_not_written_again_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(snapshots.time, "monotonic", lambda: now[0])
    segment = tmp_path / "5-1-m.segment"
    segment.write_text("first")
    kept = Snapshots(tmp_path)
    for second in range(1, 20):
        now[0] = float(second)
        kept.poll()
    assert [path.read_text() for path in snapshots_of(segment)] == ["first"]


def test_a_quota_that_nobody_tells_of_is_none(tmp_path: Path):
    assert observe.throttled_ns(tmp_path) == 0
