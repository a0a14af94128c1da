"""Threads that are interrupted on time, by the kernel's count of what they run, and not at its ticks."""

from __future__ import annotations

import platform

import pytest
from tests.cpu.conftest import may_count_tasks

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not may_count_tasks(), reason="the kernel lets nobody count tasks here"
)


def test_samples_come_on_time_where_threads_stand_in_line(sample) -> None:
    """Timers go off at ticks of the kernel at which the thread happens to run: of these samples a third."""
    seen = sample(
        """
        import os, subprocess, sys
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        busy = [sys.executable, "-SE", "-c", "while True: pass"]
        others = [subprocess.Popen(busy, env={}) for _ in range(3)]
        said = spin(0.4)
        for one in others:
            one.kill()
            one.wait()
        print(json.dumps(said))
        """
    )
    assert seen.below("spin") == pytest.approx(seen.said * 1e9, rel=0.1)
    assert seen.samples > 0.8 * 250 * seen.said
    assert seen.losses() == {}


def test_rates_above_the_kernels_tick(sample) -> None:
    seen = sample("print(json.dumps(spin(0.4)))", hz=2000)
    assert seen.samples > 0.6 * 2000 * seen.said
    assert abs(seen.total_ns - seen.said * 1e9) < 0.1e9
    assert seen.losses() == {}


def test_a_program_may_take_all_signals_and_close_all_files(sample) -> None:
    """What interrupted it on time is then a timer again."""
    seen = sample(
        """
        import os, signal
        spin(0.1)
        os.closerange(3, 256)
        mine = [open("/dev/null") for _ in range(40)]
        spin(0.2)
        assert all(os.fstat(one.fileno()) for one in mine)
        signal.signal(getattr(signal, "SIGSTKFLT", 16), lambda number, frame: None)
        spin(0.3)
        print(json.dumps(True))
        """
    )
    assert seen.below("spin") == pytest.approx(0.6e9, rel=0.1)


def test_threads_that_come_and_go_fork_and_raise_under_many_samples(sample) -> None:
    seen = sample(
        """
        import os, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of forks beside threads
        def raising(depth):
            if depth == 0:
                spin(0.0005)
                raise ValueError
            raising(depth - 1)
        def worker():
            for depth in range(20):
                try:
                    raising(depth)
                except ValueError:
                    pass
        for _ in range(20):
            workers = [threading.Thread(target=worker) for _ in range(4)]
            for one in workers:
                one.start()
            child = os.fork()
            if child == 0:
                spin(0.002)
                os._exit(0)
            os.waitpid(child, 0)
            for one in workers:
                one.join()
        """,
        hz=5000,
    )
    assert seen.samples > 500
    assert seen.below("worker") > 0.5 * 20 * 4 * 20 * 0.0005 * 1e9
