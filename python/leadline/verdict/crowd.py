"""Who has the cores that a thread stands in line for: threads of its own operators, workers, a quota, or others."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import lines_that_call
from leadline.analysis.case import Case
from leadline.analysis.contention import observed
from leadline.analysis.rules.processes import any_alive_ns, cpus, started, workers
from leadline.analysis.threads import of_operators
from leadline.units import duration, percent

_HELD_BACK = 0.05
"""Of the run: a quota that holds a process back for less is met now and then."""
_FULL = 0.5
"""Of the cores: child processes that compute for so much of the run have more work than room."""
_AS_BUSY = 0.8
"""Of its time that a child process may compute: more work than that is not done by fewer of them."""
_WORTH = 0.2
"""Of what the program ran: then what its children do is told beside who has the cores."""
_BUSY = 0.3
"""Of the run: a thread that computes so much of it is one that takes a core."""
_LEFT = 0.7
"""Of the cores: where the program ran less than that while a thread was in line for a core, others had them."""


@dataclass(frozen=True)
class Crowd:
    """`who` completes "waits for a core (...)"; `do`: what to change."""

    who: str = "other threads or programs had all cores"
    do: str = "Give it its own cores, or stop other programs"
    children: bool = False
    """Whether they are child processes of the program."""
    own: bool = False
    """Whether the program itself is the cause, which a change of it ends."""


def crowd(case: Case) -> Crowd:
    """By the facts of the file, the surest first."""
    threads, usable = of_operators(case.profile)
    cores = usable or cpus(case)
    held_ns, wall_ns = _held_back(case)
    if wall_ns > 0 and held_ns >= _HELD_BACK * wall_ns:
        limit = f"torch.set_num_threads({cores})" if threads > cores > 0 else "fewer threads and workers"
        return Crowd(
            f"the CPU quota of its control group stopped the program for {duration(held_ns)} of {duration(wall_ns)}",
            f"Raise the container's CPU quota (cpu.max, `docker run --cpus`), or use {limit}",
            own=True,
        )
    if threads > cores > 0:
        several = f"{cores} core{'s' if cores > 1 else ''}"
        return Crowd(
            f"each operator runs on {threads} threads, but the program has {several}{_asked_at(case)}",
            f"Use as many threads as there are cores: torch.set_num_threads({cores}) or OMP_NUM_THREADS={cores}",
            own=True,
        )
    number = workers(case)
    if number >= cores > 0:
        return _of_children(case, number, cores, max(threads, 1))
    return _of_few_children(case, number, cores) or _of_threads(case, cores)


def _of_few_children(case: Case, number: int, cores: int) -> Crowd | None:
    """Fewer than there are cores, which with training have more work than the cores have room."""
    children, program = _filled(case, cores) if number and cores else (0.0, 0.0)
    if program < _LEFT or children < _WORTH:
        return None
    return Crowd(
        f"{'a child process' if number == 1 else f'{number} child processes'} and training share {cores} cores",
        f"Make what the child process{'es do' if number > 1 else ' does'} cheaper, or use more cores",
        True,
        own=True,
    )


def _of_threads(case: Case, cores: int) -> Crowd:
    """More threads of the program that compute all the time than there are cores; else other programs have them."""
    longest = max((one.wall_ns for one in case.profile.threads), default=0)
    busy = [one.cpu_ns for one in case.profile.threads if one.cpu_ns >= _BUSY * longest > 0]
    if len(busy) <= cores or sum(busy) < _LEFT * cores * longest or not cores:
        return Crowd()
    return Crowd(
        f"{len(busy)} threads of the program share {cores} core{'s' if cores > 1 else ''}",
        "Let fewer threads compute at the same time, or use more cores",
        own=True,
    )


def _of_children(case: Case, number: int, cores: int, threads: int) -> Crowd:
    """`threads`: of training's own operators."""
    who = f"{number} child process{'es' if number > 1 else ''} share {cores} core{'s' if cores > 1 else ''}"
    children, program = _filled(case, cores)
    if 0 < program < _LEFT:
        return Crowd(children=children >= _WORTH * program)
    if children >= _FULL:
        cheaper = (
            "Make what the child processes do cheaper, or use more cores: they keep "
            f"{percent(children)} of the cores busy, and fewer processes would each have more to do"
        )
        return Crowd(who, cheaper, True, own=True)
    fewer = cores - threads
    if number > fewer >= 1 and children * cores <= _AS_BUSY * fewer:
        return Crowd(
            who, f"Start fewer processes than there are cores (DataLoader(num_workers={fewer}))", True, own=True
        )
    if threads >= cores:
        own = f"training alone runs on {threads} threads, as many as there are cores"
        return Crowd(who, f"Make what the child processes do cheaper, or use more cores: {own}", True, own=True)
    return Crowd(
        who, "Leave a core to training: use fewer threads in the workers, or make their work cheaper", True, True
    )


def _filled(case: Case, cores: int) -> tuple[float, float]:
    """What the child processes, and all of the program, ran of what the cores could while children were there; zeros
    where their time is not known. Workers make what is asked for, so each step brings them the same work, however
    many they are."""
    rows = {one.row for one in started(case)}
    children = [one for one in case.profile.threads if one.process in rows]
    ran = sum(one.cpu_ns for one in children)
    whole = cores * max(any_alive_ns(case), max((one.wall_ns for one in children), default=0))
    if not ran or not whole:
        return 0.0, 0.0
    others = [one for one in case.profile.threads if one.process not in rows and one.wall_ns > 0]
    beside = sum(one.cpu_ns * min(whole / cores / one.wall_ns, 1) for one in others)
    return min(ran / whole, 1.0), min((ran + beside) / whole, 1.0)


def _asked_at(case: Case) -> str:
    """`, train.py:12`: where the program asks for them."""
    lines = lines_that_call(case, ("set_num_threads",), most=1)
    return "".join(f", {one.short.rsplit('/', 1)[-1]}:{one.line}" for one in lines)


def _held_back(case: Case) -> tuple[int, int]:
    """(ns, of ns): how long the quota held the program back, of the run. Every core's wait counts."""
    longest = max((one.wall_ns for one in case.profile.threads), default=0)
    found = (one.get("throttled_ns") for one in observed(case.profile))
    return max((int(one) for one in found if isinstance(one, int | float)), default=0), longest
