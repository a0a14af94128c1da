"""A window of a framework's profiler that records more than may be held is given up, and that is said."""

from __future__ import annotations

from typing import Any

from leadline.capture.providers.profilers.memory_watch import MOST_BYTES, Watch
from leadline.capture.providers.profilers.windows import ProfilerWindows


class Windows(ProfilerWindows):
    """Over a profiler that gives `given` bytes when it is stopped, in a process of `resident` bytes."""

    PROFILER = "XLA"
    SHORTEST_S = 0.0
    COST_SHARE = 0.01

    def __init__(self, given: int) -> None:
        self.said: list[str] = []
        super().__init__(self.said.append)
        self.given = given
        self.resident = 0
        self.log: list[str] = []
        self._watch = Watch(self._give_up, lambda: self.resident)
        begin = self._watch.begin
        self._watch.begin = lambda: begin(threaded=False)  # type: ignore[method-assign, misc]

    def begin_session(self) -> None:
        self.log.append("begin")
        self.begun.append(object())

    def last_run(self, output: Any) -> None:
        if output == "very long":
            self.resident += self.most + 1
            self._watch.sample()

    def stop(self, session: Any) -> Any:
        return session

    def add_up(self, seen: Any) -> None:
        self.log.append("added")

    def discard(self, session: Any) -> int:
        self.log.append("discarded")
        return self.given

    @property
    def most(self) -> int:
        return self._watch.most_bytes

    def run(self, output: str) -> None:
        self._open(first_run=True)
        self.close(output)


def test_what_a_recorder_holds_is_let_go_while_the_run_goes_on() -> None:
    windows = Windows(given=MOST_BYTES // 7)
    windows.run("short")
    windows.run("very long")
    assert windows.log == ["begin", "added", "begin", "discarded"]
    assert windows.given_up == 1
    assert len(windows.said) == 1 and "64 MiB" in windows.said[0]
    assert windows.most == MOST_BYTES
    windows.run("short")  # and goes on
    assert windows.log[-2:] == ["begin", "added"]


def test_memory_of_the_program_itself_leaves_room_for_more_of_it() -> None:
    windows = Windows(given=1000)
    windows.run("very long")
    assert windows.log == ["begin", "discarded"] and windows.said == [] and windows.given_up == 0
    assert windows.most == 2 * MOST_BYTES
    for _ in range(40):
        windows.run("very long")
    assert windows.given_up > 0 and len(windows.said) == windows.given_up  # no more room in the machine


def test_growth_outside_of_windows_counts_for_nothing() -> None:
    windows = Windows(given=0)
    windows.run("short")
    windows.resident = 10 * MOST_BYTES
    windows._watch.sample()
    windows.run("short")
    assert "discarded" not in windows.log
