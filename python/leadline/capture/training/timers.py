"""Timers for regions of a loop: device time between two points of a stream, without waiting for the device.

Promises: `start` and `stop` never synchronise; a region entered many times counts every time; what could not be timed
is counted, never guessed. Without CUDA the same calls time the CPU; disabled they do nothing.

Device times are those between two CUDA events, of about half a microsecond's resolution, and hold whatever ran on the
stream in between. Events recorded while a graph is being captured cannot be timed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from leadline.capture.current import CURRENT
from leadline.capture.region import begin_region, end_region

CAPACITY = 1024
"""Pairs of events that may wait to be read, per timer; beyond that passes are counted as untimed."""


class Clock(Protocol):
    """Where time comes from: marks in a stream, and what lies between two of them."""

    def mark(self, stream: Any) -> Any:
        """A mark in the stream now; None where it cannot be timed. Never waits."""

    def elapsed_ms(self, begin: Any, end: Any) -> float | None:
        """Milliseconds between two marks; None while the second has not been reached. Never waits."""

    def wait(self, mark: Any) -> None:
        """Until the stream has reached the mark."""

    def stream(self, asked: Any) -> Any:
        """The stream that is meant: `asked`, or the current one."""


class CpuClock:
    """Time of the CPU: marks are reached at once."""

    def mark(self, stream: Any) -> int:
        return time.perf_counter_ns()

    def elapsed_ms(self, begin: int, end: int) -> float:
        return (end - begin) / 1e6

    def wait(self, mark: int) -> None:
        pass

    def stream(self, asked: Any) -> None:
        return None


class CudaClock:
    """CUDA events, reused once they have been read."""

    def __init__(self, cuda: Any = None) -> None:
        if cuda is None:
            import torch

            cuda = torch.cuda
        self._cuda: Any = cuda
        self._free: dict[Any, deque[Any]] = {}  # an event belongs to the device on which it was first recorded

    def mark(self, stream: Any) -> Any:
        if self._cuda.is_current_stream_capturing():
            return None
        try:
            event = self._free[stream.device].pop()
        except (KeyError, IndexError):
            event = self._cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def elapsed_ms(self, begin: Any, end: Any) -> float | None:
        if not end.query():
            return None
        elapsed = float(begin.elapsed_time(end))
        self._free.setdefault(end.device, deque(maxlen=2 * CAPACITY)).extend((begin, end))
        return elapsed

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def stream(self, asked: Any) -> Any:
        return self._cuda.current_stream() if asked is None else asked


def default_clock() -> Clock:
    """CUDA's where there is a device, the CPU's elsewhere; decided once, when a timer is made."""
    try:
        import torch
    except ImportError:
        return CpuClock()
    return CudaClock() if torch.cuda.is_available() else CpuClock()


@dataclass(frozen=True)
class Timing:
    """What a timer has measured, in milliseconds. `untimed`: passes that were not measured, of `count` + `untimed`."""

    count: int
    sum_ms: float
    min_ms: float
    max_ms: float
    untimed: int

    @property
    def mean_ms(self) -> float:
        return self.sum_ms / self.count if self.count else 0.0


class CUDATimer:
    """Times a region entered any number of times, by any number of threads, also inside itself.

    >>> timer = CUDATimer("forward")
    >>> with timer: loss = model(batch)
    >>> timer.elapsed_ms()

    `region`: also open `leadline.region(name)`, and with it whatever Leadline shows, around each pass. `nvtx`: also an
    NVTX range (CUDA only). `clock`: for tests.
    """

    def __init__(
        self,
        name: str = "timer",
        *,
        enabled: bool = True,
        stream: Any = None,
        region: bool = False,
        nvtx: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.enabled = enabled
        self._stream = stream
        self._region = region
        self._lock = threading.Lock()
        self._open = threading.local()
        self._pending: deque[tuple[Any, Any]] = deque()
        self._count = self._untimed = 0
        self._sum = self._max = 0.0
        self._min = float("inf")
        self._last = 0.0
        if enabled:
            self._clock = default_clock() if clock is None else clock
            self._nvtx = _nvtx() if nvtx else None

    def start(self, stream: Any = None) -> None:
        """A pass begins on `stream`, by default the timer's own, else the current one."""
        if not self.enabled:
            return
        stack = self._open.__dict__.setdefault("stack", [])
        token = None
        if self._region and CURRENT.native is not None:
            token = begin_region(self.name, None)
        if self._nvtx is not None:
            self._nvtx[0](self.name)
        where = self._clock.stream(self._stream if stream is None else stream)
        stack.append((self._clock.mark(where), where, token))

    def stop(self, stream: Any = None) -> None:
        """The innermost pass of this thread ends; without one nothing happens. One that ends on another stream than it
        began on is counted as untimed."""
        if not self.enabled:
            return
        stack = self._open.__dict__.get("stack")
        if not stack:
            return
        begin, where, token = stack.pop()
        ended = self._clock.stream(self._stream if stream is None else stream)
        end = self._clock.mark(ended) if begin is not None and ended == where else None
        if self._nvtx is not None:
            self._nvtx[1]()
        if token is not None:
            end_region(token)
        with self._lock:
            if end is None or len(self._pending) >= CAPACITY:
                self._poll()
            if end is None or len(self._pending) >= CAPACITY:
                self._untimed += 1
            else:
                self._pending.append((begin, end))

    def poll(self) -> None:
        """Take in the passes that the device has finished, without waiting: call it once a step."""
        if self.enabled:
            with self._lock:
                self._poll()

    def read(self, *, synchronize: bool = True) -> Timing:
        """All passes that have ended; waits for the device only here, and not at all when `synchronize` is false."""
        if not self.enabled:
            return Timing(0, 0.0, 0.0, 0.0, 0)
        with self._lock:
            if synchronize and self._pending:
                for _, end in self._pending:
                    self._clock.wait(end)
            self._poll()
            least = self._min if self._count else 0.0
            return Timing(self._count, self._sum, least, self._max, self._untimed)

    def elapsed_ms(self) -> float:
        """Milliseconds of the pass that ended last; waits for it."""
        self.read()
        return self._last

    def reset(self) -> None:
        """Forget what was measured; passes under way go on."""
        with self._lock:
            self._pending.clear()
            self._count = self._untimed = 0
            self._sum = self._max = self._last = 0.0
            self._min = float("inf")

    def __enter__(self) -> CUDATimer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _poll(self) -> None:
        """With the lock held. Marks of several streams are reached in any order."""
        for _ in range(len(self._pending)):
            begin, end = self._pending.popleft()
            elapsed = self._clock.elapsed_ms(begin, end)
            if elapsed is None:
                self._pending.append((begin, end))
                continue
            self._count += 1
            self._sum += elapsed
            self._min = min(self._min, elapsed)
            self._max = max(self._max, elapsed)
            self._last = elapsed


class CUDATimerCollection:
    """Timers by name. Names that were not announced are made when first started.

    >>> timers = CUDATimerCollection(regions=["forward", "backward"], enabled=True)
    >>> with timers.time("forward"): loss = model(batch)
    >>> timers.summary()
    """

    def __init__(self, regions: Iterable[str] = (), *, enabled: bool = True, **options: Any) -> None:
        self.enabled = enabled
        self._options = options
        self._lock = threading.Lock()
        self._timers: dict[str, CUDATimer] = {}
        if enabled and options.get("clock") is None:
            options["clock"] = default_clock()
        for name in regions:
            self._timer(name)
        if not enabled:  # a bound method that does nothing costs less than a test in each call
            self.start = self.stop = _nothing  # type: ignore[method-assign]
            self.time = _no_time  # type: ignore[method-assign]

    def start(self, name: str, stream: Any = None) -> None:
        """A pass of the region begins."""
        self._timer(name).start(stream)

    def stop(self, name: str, stream: Any = None) -> None:
        """The innermost pass of the region in this thread ends."""
        self._timer(name).stop(stream)

    def time(self, name: str) -> AbstractContextManager[Any]:
        """A `with` block around a pass."""
        return self._timer(name)

    def step(self) -> None:
        """Take in what the device has finished, without waiting."""
        for timer in self._timers.values():
            timer.poll()

    def elapsed_ms(self, name: str) -> float:
        """Sum of all passes of the region, in milliseconds."""
        return self._timer(name).read().sum_ms

    def elapsed_all(self) -> dict[str, float]:
        """Sums of all regions, in milliseconds."""
        return {name: timing.sum_ms for name, timing in self.summary().items()}

    def summary(self, *, synchronize: bool = True) -> dict[str, Timing]:
        """All regions with count, sum, least and most."""
        return {name: timer.read(synchronize=synchronize) for name, timer in list(self._timers.items())}

    def reset(self) -> None:
        """Forget what was measured."""
        for timer in list(self._timers.values()):
            timer.reset()

    def _timer(self, name: str) -> CUDATimer:
        found = self._timers.get(name)
        if found is None:
            with self._lock:
                found = self._timers.setdefault(name, CUDATimer(name, enabled=self.enabled, **self._options))
        return found


class _NoTime(AbstractContextManager[None]):
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_NO_TIME = _NoTime()


def _nothing(name: str, stream: Any = None) -> None:
    pass


def _no_time(name: str) -> AbstractContextManager[Any]:
    return _NO_TIME


def _nvtx() -> tuple[Callable[[str], Any], Callable[[], Any]] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    nvtx: Any = torch.cuda.nvtx
    return nvtx.range_push, nvtx.range_pop
