"""Windows make way for the program's own sessions, whatever thread or moment these come in."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from leadline.capture.providers.profilers.door import Door
from leadline.capture.providers.profilers.windows import ProfilerWindows


class Recorder:
    """A profiler of which a process has one: who is second begins, and fails when it stops, as XLA's does."""

    active = 0
    """`id` of the session that records."""

    class ProfilerSession:
        """Begins when it is made."""

        def __init__(self) -> None:
            self.mine = not Recorder.active
            self.stopped = False
            if self.mine:
                Recorder.active = id(self)

        def stop(self) -> bytes:
            if not self.mine:
                raise RuntimeError("ALREADY_EXISTS")
            if self.stopped:
                raise RuntimeError("stopped twice")
            self.stopped = True
            self.__del__()
            return b"recorded"

        def __del__(self) -> None:
            if Recorder.active == id(self):
                Recorder.active = 0

    @staticmethod
    def start_server(port: int) -> int:
        if port < 0:
            raise ValueError(port)
        return port


class Windows(ProfilerWindows):
    """Windows over that profiler; `run` is a call into the framework."""

    PROFILER = "XLA"
    SHORTEST_S = 0.0
    COST_SHARE = 1e9

    def __init__(self) -> None:
        self.said: list[str] = []
        super().__init__(self.said.append)
        self.whole = True
        self.log: list[str] = []
        self.waits: Callable[[], None] = lambda: None
        self.ends: Callable[[], None] = lambda: None
        self.stops: Callable[[], None] = lambda: None
        self.adds: Callable[[], None] = lambda: None

    def begin_session(self) -> None:
        self.begun.append(self.session_type())

    def last_run(self, output: Any) -> None:
        self.waits()

    def is_whole(self) -> bool:
        return self.whole

    def stop(self, session: Any) -> bytes:
        self.ends()
        stopped: bytes = session.stop()
        self.stops()
        return stopped

    def discard(self, session: Any) -> int:
        self.log.append("discarded")
        return len(session.stop())

    def add_up(self, seen: bytes) -> None:
        self.adds()
        self.log.append(seen.decode())

    def run(self) -> None:
        """One window, as far as there may be one."""
        self._open(first_run=True)
        self.close()

    def open(self) -> bool:
        """Begin one; whether it is open."""
        self._open(first_run=True)
        return self._session is not None


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Windows]:
    """Windows with a door before the recorder, and one of them open. They end with the test: the thread that looks after
    an open one would go on for as long as the process."""
    binding = type("binding", (), dict(vars(Recorder)))
    monkeypatch.setattr(Recorder, "active", 0)
    windows = Windows()
    Door(windows).install(binding, "__init__", "served")
    windows.binding = binding  # type: ignore[attr-defined]
    assert windows.open()
    yield windows
    windows.waits = windows.ends = windows.stops = windows.adds = lambda: None
    windows.finish()


def _session(windows: Windows) -> Any:
    return windows.binding.ProfilerSession()  # type: ignore[attr-defined]


def test_a_session_of_the_programs_closes_ours_and_none_is_opened_until_it_ends(opened: Windows) -> None:
    theirs = _session(opened)
    assert opened.log == ["recorded"]
    assert not opened.open()
    assert theirs.stop() == b"recorded"
    assert opened.open()


def test_one_that_is_dropped_without_being_stopped_has_ended(opened: Windows) -> None:
    theirs = _session(opened)
    assert not opened.open()
    del theirs
    gc.collect()
    assert opened.open()


def test_one_that_fails_to_begin_or_to_stop_fails_as_without_us_and_windows_go_on(opened: Windows) -> None:
    kind = opened.binding.ProfilerSession  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        kind(3)
    assert opened.open()
    first, second = kind(), kind()
    with pytest.raises(RuntimeError, match="ALREADY_EXISTS"):
        second.stop()
    assert not opened.open()
    first.stop()
    assert opened.open()


def test_a_window_with_runs_that_go_on_is_not_waited_for_and_counts_for_nothing(opened: Windows) -> None:
    opened.whole = False
    opened.waits = lambda: pytest.fail("a session of the program waited for a run")
    assert _session(opened).stop() == b"recorded"
    assert opened.log == ["discarded"]


@pytest.mark.timeout(60)
def test_a_thread_that_waits_for_its_run_holds_nobody_up(opened: Windows) -> None:
    waiting, over = threading.Event(), threading.Event()
    opened.waits = lambda: (waiting.set(), over.wait(50))[0]  # type: ignore[func-returns-value]
    thread = threading.Thread(target=opened.close)
    thread.start()
    assert waiting.wait(50)
    theirs = _session(opened)
    over.set()
    thread.join(50)
    assert theirs.stop() == b"recorded"
    assert opened.log == ["recorded"]


@pytest.mark.parametrize("moment", ["waits", "ends", "stops", "adds"])
def test_a_signal_handler_may_begin_a_session_while_ours_is_being_closed(opened: Windows, moment: str) -> None:
    kept: list[Any] = []

    def handler() -> None:
        setattr(opened, moment, lambda: None)
        kept.append(_session(opened))
        opened.run()  # it runs a program as well

    setattr(opened, moment, handler)
    opened.close()
    assert kept[0].stop() == b"recorded"
    assert opened.open()
    assert opened.said == []


@pytest.mark.parametrize("given_up", [False, True])
def test_windows_come_again_after_one_that_was_given_up_while_the_program_began_a_session(
    opened: Windows, given_up: bool
) -> None:
    theirs = None if given_up else _session(opened)
    opened._give_up(2**30)
    theirs = theirs or _session(opened)
    assert theirs.stop() == b"recorded"
    assert opened.open() and opened.off == ""


def test_a_server_ends_windows_and_one_that_could_not_be_started_does_not(opened: Windows) -> None:
    serve = opened.binding.start_server  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="-1"):
        serve(-1)
    gc.collect()
    assert opened.open()
    assert serve(7) == 7
    assert not opened.open() and opened.said == ["served"]


def test_when_windows_have_finished_no_thread_opens_one(opened: Windows) -> None:
    opened.finish()
    assert opened.log == ["recorded"]
    assert not opened.open()
    assert _session(opened).stop() == b"recorded"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(5))
def test_sessions_from_several_threads_never_meet_one_of_ours(opened: Windows, seed: int) -> None:
    """Theirs take turns among themselves, as a program's must; ours come in between from threads of their own."""
    turns, ended, failed = threading.Lock(), threading.Event(), list[Exception]()

    def theirs(choice: random.Random) -> None:
        for _ in range(200):
            with turns:
                session = _session(opened)
                if choice.random() < 0.2:
                    opened._give_up(2**30)
                try:
                    session.stop()
                except RuntimeError as error:
                    failed.append(error)

    def ours() -> None:
        while not ended.is_set():
            opened.run()

    users = [threading.Thread(target=theirs, args=(random.Random(10 * seed + one),)) for one in range(2)]
    running = [threading.Thread(target=ours) for _ in range(2)]
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in users + running:
        thread.start()
    for thread in users:
        thread.join(50)
    ended.set()
    for thread in running:
        thread.join(50)
    sys.setswitchinterval(often)
    assert failed == []
    opened.close()
    assert opened.open()
