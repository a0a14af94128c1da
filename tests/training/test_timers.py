"""CUDATimer over a fake stream of which each mark is reached when the test says so, and over the CPU."""

import threading

import pytest

import leadline
from leadline.capture.training.timers import CAPACITY, CpuClock, CudaClock


class FakeStream:
    """A device: marks are numbered as they are recorded; `reach(n)` completes the first n, at 10 ms apiece."""

    def __init__(self) -> None:
        self.recorded = 0
        self.reached = 0
        self.waits = 0
        self.capturing = False
        self.current = "default"

    def mark(self, stream) -> int | None:
        if self.capturing:
            return None
        self.recorded += 1
        return self.recorded

    def elapsed_ms(self, begin, end) -> float | None:
        return 10.0 * (end - begin) if end <= self.reached else None

    def wait(self, mark) -> None:
        self.waits += 1
        self.reached = max(self.reached, mark)

    def stream(self, asked):
        return asked or self.current


def test_a_region_entered_many_times_counts_every_time_and_waits_only_when_read() -> None:
    device = FakeStream()
    timer = leadline.CUDATimer("step", clock=device)
    for _ in range(3):
        with timer:
            device.mark(None) if device.recorded > 4 else None
    assert timer.read(synchronize=False).count == 0
    assert device.waits == 0
    timing = timer.read()
    assert (timing.count, timing.sum_ms, timing.min_ms, timing.max_ms, timing.untimed) == (3, 40.0, 10.0, 20.0, 0)
    assert timer.elapsed_ms() == 20.0


def test_nested_passes_of_one_timer_and_of_two() -> None:
    device = FakeStream()
    timers = leadline.CUDATimerCollection(["outer"], clock=device)
    with timers.time("outer"), timers.time("inner"), timers.time("outer"):
        pass
    summary = timers.summary()
    assert (summary["outer"].count, summary["outer"].sum_ms) == (2, 60.0)
    assert (summary["inner"].count, summary["inner"].sum_ms) == (1, 30.0)
    assert timers.elapsed_all() == {"outer": 60.0, "inner": 30.0}


def test_what_cannot_be_timed_is_counted() -> None:
    device = FakeStream()
    timer = leadline.CUDATimer(clock=device)
    timer.start()
    device.current = "side"
    timer.stop()  # on another stream
    device.capturing = True
    with timer:
        pass
    timer.stop()  # without a start
    assert (timer.read().count, timer.read().untimed) == (0, 2)


def test_the_ring_never_grows_and_never_waits() -> None:
    device = FakeStream()
    timer = leadline.CUDATimer(clock=device)
    for _ in range(CAPACITY + 10):
        with timer:
            pass
    assert device.waits == 0
    device.reached = device.recorded
    assert (timer.read().count, timer.read().untimed) == (CAPACITY, 10)
    with timer:
        pass
    assert timer.read().count == CAPACITY + 1


def test_threads_do_not_take_each_others_passes() -> None:
    timer = leadline.CUDATimer(clock=CpuClock())
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(200):
            with timer:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (timer.read().count, timer.read().untimed) == (800, 0)


def test_disabled_does_nothing_with_the_same_calls() -> None:
    timers = leadline.CUDATimerCollection(["a"], enabled=False)
    timers.start("a")
    timers.stop("a")
    with timers.time("never announced"):
        pass
    timers.step()
    assert timers.elapsed_all() == {"a": 0.0}
    off = leadline.CUDATimer(enabled=False)
    with off:
        pass
    assert (off.read().count, off.elapsed_ms()) == (0, 0.0)


def test_without_a_device_it_times_the_cpu_and_opens_a_region(tmp_path) -> None:
    with leadline.profile(tmp_path / "a.leadline"):
        timer = leadline.CUDATimer("forward", region=True)
        for _ in range(5):
            with timer:
                pass
    assert timer.read().count == 5
    assert timer.read().sum_ms == pytest.approx(5 * timer.read().mean_ms)
    found = [node for node in leadline.open(str(tmp_path / "a.leadline")).tree.walk() if node.kind == "region"]
    assert [node.name for node in found] == ["forward"]


class FakeCuda:
    """Two devices, of which an event refuses the one that it was not made on, as CUDA's do."""

    def __init__(self) -> None:
        self.made = 0

    def is_current_stream_capturing(self) -> bool:
        return False

    def Event(self, enable_timing: bool):
        self.made += 1
        return FakeEvent()


class FakeEvent:
    device = None

    def record(self, stream) -> None:
        assert self.device in (None, stream.device), "recorded on another device"
        self.device = stream.device

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end) -> float:
        return 1.0


class Stream:
    def __init__(self, device: str) -> None:
        self.device = device


def test_events_are_reused_on_their_own_device_only() -> None:
    cuda, streams = FakeCuda(), [Stream("cuda:0"), Stream("cuda:1")]
    timer = leadline.CUDATimer(clock=CudaClock(cuda))
    for stream in streams * 3:
        timer.start(stream)
        timer.stop(stream)
        assert timer.read().untimed == 0
    assert (timer.read().count, cuda.made) == (6, 4)
