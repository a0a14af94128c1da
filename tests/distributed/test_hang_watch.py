"""When a job is looked at by itself: the moment, who looks, and how often."""

import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.capture.hang_watch import HangWatch


def group(size: int, timeout_s: float | None = None) -> SimpleNamespace:
    options = SimpleNamespace(_timeout=timedelta(seconds=timeout_s)) if timeout_s else None
    return SimpleNamespace(
        size=lambda: size, _device_types=["cpu"], _get_backend=lambda device: SimpleNamespace(options=options)
    )


@pytest.mark.parametrize(
    ("timeouts", "expected"), [([None], 60.0), ([1800.0], 60.0), ([1800.0, 40.0], 20.0), ([None, 90.0], 45.0)]
)
def test_torchs_timeout_is_never_awaited(timeouts: list[float | None], expected: float) -> None:
    watch = HangWatch(60.0, lambda: 0.0, lambda: None)
    watch.follow([(group(4, timeout_s), 0) for timeout_s in timeouts])
    assert watch.limit_s == expected
    watch.stop()


def test_no_thread_for_one_rank_and_none_where_nobody_wants_it() -> None:
    before = threading.active_count()
    HangWatch(60.0, lambda: 0.0, lambda: None).follow([(group(1), 0)])
    HangWatch(0.0, lambda: 0.0, lambda: None).follow([(group(4), 0)])
    assert threading.active_count() == before


def test_one_of_a_machine_looks_and_once_for_a_standstill(tmp_path: Path, monkeypatch, capfd) -> None:
    """Ranks whose look is a script that leaves the file it is told to."""
    script = "import sys; open(sys.argv[3], 'w').write('x'); print('Rank 1 did not arrive.')"
    monkeypatch.setattr("leadline.capture.hang_watch._LOOK", script)
    standing_s = [100.0]
    watches = [HangWatch(0.05, lambda: standing_s[0], lambda: tmp_path / "a.leadline.part") for _ in range(4)]
    for watch in watches:
        watch.follow([(group(4), 0)])
    deadline = time.monotonic() + 60
    while not all(watch.knows for watch in watches):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for watch in watches:
        watch.stop()
    (file,) = tmp_path.glob("hang_*.txt")
    assert capfd.readouterr().err.splitlines() == [f"leadline: Rank 1 did not arrive. {file} lists all ranks."]
