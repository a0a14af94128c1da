"""Trace windows by the clock open and close once, whatever comes first: their time or the end of the session."""

import threading

import pytest

from leadline.capture.config import TraceWindow
from leadline.capture.schedule import TimedWindow


class Log:
    def __init__(self) -> None:
        self.entries: list[str] = []
        self.closed = threading.Event()

    def open(self) -> None:
        self.entries.append("open")

    def close(self) -> None:
        self.entries.append("close")
        self.closed.set()


@pytest.mark.parametrize("wait_s", [0, 0.01])
def test_a_window_closes_by_itself(wait_s: float) -> None:
    log = Log()
    window = TimedWindow(TraceWindow(seconds=0.01, wait=wait_s), log.open, log.close)
    window.start()
    assert log.closed.wait(60)
    window.stop()
    assert log.entries == ["open", "close"]


def test_the_end_of_the_session_closes_an_open_window() -> None:
    log = Log()
    window = TimedWindow(TraceWindow(seconds=1000, wait=0), log.open, log.close)
    window.start()
    assert log.entries == ["open"]
    window.stop()
    assert log.entries == ["open", "close"]


def test_a_window_that_had_to_wait_longer_never_opens() -> None:
    log = Log()
    window = TimedWindow(TraceWindow(seconds=1, wait=1000), log.open, log.close)
    threads = threading.active_count()
    window.start()
    window.stop()
    assert log.entries == []
    assert threading.active_count() == threads
