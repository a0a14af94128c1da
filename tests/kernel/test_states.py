"""States of threads from drawn events of the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.profiles import Profile
from leadline.profiles.builder import ProfileBuilder
from leadline.trace.kernel.window import states_of
from leadline.trace.states import State
from leadline.trace.waits import ThreadTime

MAIN, WORKER, HOG = 100, 101, 900
RUNNABLE, SLEEPS = 0, 1


def profile(*events: tuple[object, ...], window: tuple[int, int] = (1_000, 2_000)) -> Profile:
    """Events as (kind, time, tid, target, value, name) of a process with two threads."""
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=MAIN, start_ns=1)
    builder.thread(process, "main", tid=MAIN)
    builder.thread(process, "worker", tid=WORKER)
    for kind, time, tid, target, value, name in events:
        builder.kernel_event(
            str(kind),
            int(str(time)),
            str(name),
            tid=int(str(tid)),
            target=int(str(target)),
            value=int(str(value)),
            cpu=1,
        )
    found = builder.profile()
    found.meta["kernel"] = {"source": "tracefs", "level": "syscalls", "from_ns": window[0], "until_ns": window[1]}
    return found


def told(found: Profile, tid: int = MAIN) -> list[tuple[int, int, str, str, str]]:
    states = found.window.states
    mine = states["tid"] == tid
    columns = (states[name][mine].tolist() for name in ("start_ns", "duration_ns", "state", "reason", "other_name"))
    return list(zip(*columns, strict=True))


def test_a_thread_that_is_sent_off_waits_for_who_held_its_cpu() -> None:
    found = profile(
        ("switch", 1_200, MAIN, HOG, RUNNABLE, "cc1plus"),
        ("switch", 1_700, HOG, MAIN, RUNNABLE, "main"),
    )
    assert told(found) == [
        (1_000, 200, "running", "", ""),
        (1_200, 500, "runnable", "", "cc1plus"),
        (1_700, 300, "running", "", ""),
    ]


@pytest.mark.parametrize("helper", ["rcu_preempt", "kworker/0:0H", "ksoftirqd/1"])
def test_a_long_wait_is_not_laid_to_a_helper_of_the_kernel(helper: str) -> None:
    """Only switches from and to the program's threads are seen, and who left last may have run for microseconds."""
    ms = 1_000_000

    def waited(first: tuple[int, str], lasts_ns: int) -> str:
        found = profile(
            ("switch", ms, MAIN, *(first[0], RUNNABLE, first[1])),
            ("switch", ms + lasts_ns, 17, MAIN, RUNNABLE, "main"),
            ("switch", 30 * ms, MAIN, 17, SLEEPS, helper),
            window=(ms // 2, 40 * ms),
        )
        return told(found)[1][4]

    assert waited((HOG, "cc1plus"), 20 * ms) == "cc1plus", "who came when it was sent off is likelier"
    assert waited((17, helper), 20 * ms) == "", "then nobody is named"
    assert waited((17, helper), 20_000) == helper


def test_a_block_has_its_system_call_and_its_waker() -> None:
    found = profile(
        ("syscall_entry", 1_100, MAIN, -1, 0, "futex"),
        ("switch", 1_150, MAIN, 0, SLEEPS, "swapper"),
        ("waking", 1_400, WORKER, MAIN, 1, "main"),
        ("switch", 1_450, 0, MAIN, RUNNABLE, "main"),
        ("syscall_exit", 1_460, MAIN, -1, 0, "futex"),
        ("switch", 1_800, MAIN, WORKER, SLEEPS, "worker"),
        window=(1_000, 2_000),
    )
    assert told(found) == [
        (1_000, 150, "running", "", ""),
        (1_150, 250, "blocked", "futex", "worker"),
        (1_400, 50, "runnable", "", ""),
        (1_450, 350, "running", "", ""),
        (1_800, 200, "blocked", "", ""),  # a page fault: no system call was open
    ]
    assert told(found, WORKER)[0] == (1_000, 800, "runnable", "", "main")


def test_who_is_not_blocked_is_not_woken_and_an_interrupt_is_nobody() -> None:
    found = profile(
        ("waking", 1_100, WORKER, MAIN, 1, "main"),  # before its first switch: it was blocked
        ("waking", 1_200, WORKER, MAIN, 1, "main"),
        ("switch", 1_300, 0, MAIN, RUNNABLE, "main"),
        ("waking", 1_350, WORKER, MAIN, 1, "main"),
        ("switch", 1_400, MAIN, 0, SLEEPS, "swapper"),
        ("waking", 1_500, -1, MAIN, 1, "main"),
        ("switch", 1_600, 0, MAIN, RUNNABLE, "main"),
    )
    assert [(start, state, who) for start, _, state, _, who in told(found)] == [
        (1_000, "blocked", "worker"),
        (1_100, "runnable", ""),
        (1_300, "running", ""),
        (1_400, "blocked", ""),
        (1_500, "runnable", ""),
        (1_600, "running", ""),
    ]


def test_a_thread_that_began_or_ended_in_the_window_has_no_time_outside_its_life() -> None:
    found = profile(
        ("fork", 1_200, MAIN, WORKER, 0, "worker"),
        ("switch", 1_300, MAIN, WORKER, RUNNABLE, "worker"),
        ("exit", 1_400, WORKER, -1, 0, "worker"),
        ("switch", 1_410, WORKER, MAIN, 0x40, "main"),
    )
    assert [(start, duration, state) for start, duration, state, *_ in told(found, WORKER)] == [
        (1_200, 100, "runnable"),
        (1_300, 100, "running"),
    ]


def test_switches_without_names_give_states_without_names() -> None:
    found = profile(
        ("switch_out", 1_200, MAIN, -1, 1, ""),
        ("switch_in", 1_300, MAIN, -1, 0, ""),
        ("switch_out", 1_500, MAIN, -1, 0, ""),
    )
    assert [(start, state, who) for start, _, state, _, who in told(found)] == [
        (1_000, "running", ""),
        (1_200, "runnable", ""),
        (1_300, "running", ""),
        (1_500, "blocked", ""),
    ]


def test_a_profile_without_the_kernel_has_no_states() -> None:
    assert len(ProfileBuilder().profile().window.states["tid"]) == 0


@pytest.mark.parametrize("seed", range(20))
def test_states_partition_the_window_and_every_stretch_adds_up(seed: int) -> None:
    random = np.random.default_rng(seed)
    events = []
    for time in np.sort(random.integers(1_000, 2_000, 60)).tolist():
        kind = ["switch", "waking", "switch_out", "switch_in", "syscall_entry", "syscall_exit"][random.integers(6)]
        one, other = random.permutation([0, MAIN, WORKER, HOG])[:2].tolist()
        events.append((kind, time, one, other, int(random.integers(3)), "x"))
    states = states_of(profile(*events))
    for tid in (MAIN, WORKER):
        mine = states.of(tid)
        if not len(mine):
            continue
        assert mine.start_ns[0] == 1_000
        assert mine.end_ns[-1] == 2_000
        assert (mine.start_ns[1:] == mine.end_ns[:-1]).all()
        time = ThreadTime(mine)
        borders = np.unique(random.integers(900, 2_100, 12))
        for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            spent = time.spent(np.array([low]), np.array([high]))
            assert spent.wall_ns == high - low
            assert spent.running_ns + spent.runnable_ns + spent.blocked_ns + spent.unseen_ns == high - low
            unseen = max(0, 1_000 - low) + max(0, high - 2_000)
            assert spent.unseen_ns == min(unseen, high - low)
            brute = sum(
                max(0, min(end, high) - max(start, low))
                for start, end, state in zip(
                    mine.start_ns.tolist(), mine.end_ns.tolist(), mine.state.tolist(), strict=True
                )
                if state == State.RUNNING
            )
            assert spent.running_ns == brute
