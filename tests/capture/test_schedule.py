"""Trace windows open and close once, at the right step."""

import threading

import pytest

from leadline.capture.config import TraceWindow
from leadline.capture.schedule import TraceSchedule


class Log:
    def __init__(self) -> None:
        self.entries: list[str] = []
        self.closed = threading.Event()

    def open(self) -> None:
        self.entries.append("open")

    def close(self) -> None:
        self.entries.append("close")
        self.closed.set()


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TraceWindow(steps=2, wait=0), ["open", 1, 2, "close", 3, 4]),
        (TraceWindow(steps=2, wait=1), [1, "open", 2, 3, "close", 4]),
        (TraceWindow(steps=1, wait=3), [1, 2, 3, "open", 4, "close"]),
        (TraceWindow(steps=9, wait=1), [1, "open", 2, 3, 4, "close"]),
        (TraceWindow(steps=1, wait=9), [1, 2, 3, 4]),
    ],
)
def test_windows_by_steps(window: TraceWindow, expected: list[object]) -> None:
    log = Log()
    schedule = TraceSchedule(window, log.open, log.close)
    seen: list[object] = []
    schedule.start()
    for step in (1, 2, 3, 4):
        seen += [*log.entries, step]
        log.entries.clear()
        schedule.step_ended()
    schedule.stop()
    schedule.stop()
    assert seen + log.entries == expected


def test_a_window_by_seconds_closes_by_itself() -> None:
    log = Log()
    schedule = TraceSchedule(TraceWindow(seconds=0.01, wait=0.01), log.open, log.close)
    schedule.start()
    schedule.step_ended()
    assert log.closed.wait(30)
    schedule.stop()
    assert log.entries == ["open", "close"]


def test_stopping_before_the_wait_is_over_opens_nothing() -> None:
    log = Log()
    schedule = TraceSchedule(TraceWindow(seconds=1, wait=1000), log.open, log.close)
    schedule.start()
    schedule.stop()
    assert log.entries == []
    assert not [thread for thread in threading.enumerate() if thread.name == "leadline-trace-window" and thread.is_alive()] or (
        schedule._timer is not None and schedule._timer.finished.is_set()
    )
