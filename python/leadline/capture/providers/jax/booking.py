"""Puts what is known of JAX's programs into the profile: exact numbers of runs, and times estimated from timed runs.

At each place a program hangs as an operator `jit(name)`, and below it the user's lines inside of the compiled function
with the operations made from them. A place and function appear when they have been timed, or else at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from leadline.capture.native import PLACE_THREAD, Native
from leadline.capture.providers.booked import Booked, own_total, total, turn_frame
from leadline.capture.providers.jax.programs import Compiled, Programs
from leadline.capture.providers.jax.runs import Key
from leadline.capture.providers.jax.windows import Timed, Windows
from leadline.xla.parts import Frame, talks, unknown

_LIBRARIES = ("nccl", "void nccl", "rccl")
"""How kernels of the libraries for communication begin."""
_NAMED = 3
_UNTIMED = json.dumps({"time": "not measured"})


POOL: Frame = ("phase", "on another thread", "", "", json.dumps({"pool": "XLA"}), 0, 0, 0)
"""Operations run on threads of XLA's own, which are not among those of the profile."""


class Booking:
    """What has been put in so far, so that each run is put in once."""

    def __init__(self, native: Native, programs: Programs, windows: Windows) -> None:
        self._booked = Booked(native)
        self._programs = programs
        self._windows = windows
        self._runs: dict[Key, int] = {}
        self._of_several: set[str] = set()
        """Functions that ran as several programs at one place, such as forward and backward of one."""
        self._untimed = 0
        self._first_runs: dict[tuple[Key, int], int] = {}
        """Runs of programs that were put in as the first run that was timed."""

    def book(self, counts: dict[Key, int], *, last: bool, heard: Mapping[str, int] = MappingProxyType({})) -> int:
        """Put in all runs that are new; `last`: also those of functions that were never timed, less the runs that were
        `heard`, by the names of programs, which stand in the tree already. Returns how many of those there are so
        far."""
        known = dict(heard)
        for key, count in list(counts.items()):
            new = count - self._runs.get(key, 0)
            if new <= 0:
                continue
            mix = self._mix(key)
            if not mix and not last and not self._windows.is_too_large(key[1]):
                continue
            if mix:
                if len(mix) > 1:
                    self._of_several.add(key[1])
                self._runs[key] = count - self._left_after_booking(key, new, mix, last=last)
                continue
            self._runs[key] = count
            stand = min(new, known.get(key[1], 0))
            known[key[1]] = known.get(key[1], 0) - stand
            if new > stand:
                self._untimed += new - stand
                self._book_untimed(key, new - stand)
        return self._untimed

    def book_turns(self, turns: list[tuple[str, int, int, int, int, float]]) -> None:
        """Put in how long turns of the loops around programs took, as phases of this thread beside its steps."""
        for name, count, total_ns, shortest, longest, squares in turns:
            spent = ("call_time", count, total_ns, shortest, longest, squares)
            self._booked.put(PLACE_THREAD, (turn_frame(name),), [spent])

    def how_exact(self) -> str:
        """Whether runs and the operations in them were counted or estimated. Of a run JAX tells the function's name;
        only timed runs tell which of its programs it was."""
        if not self._of_several:
            return "counts are exact."
        names = sorted(self._of_several)
        several = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
        return (
            f"runs of functions are counted exactly. How often each program of {several} ran, and the operations in "
            "it, are estimates from the timed runs as well, since several programs have that name at one place."
        )

    def _mix(self, key: Key) -> dict[int, int]:
        """Timed runs by program: of this place, or else of the same function at any other."""
        own = self._windows.of_key.get(key)
        if own:
            return dict(own)
        mix: dict[int, int] = {}
        for (_, name), runs in self._windows.of_key.items():
            if name == key[1]:
                for number, count in runs.items():
                    mix[number] = mix.get(number, 0) + count
        return mix

    def _book_untimed(self, key: Key, new: int) -> None:
        self._booked.put(key[0], (_program(key[1], _UNTIMED),), [("call_time", new, 0, 0, 0, 0.0)])

    def _left_after_booking(self, key: Key, new: int, mix: dict[int, int], *, last: bool) -> int:
        """Put runs in; how many are left for when there is more than a first run to tell their time, which takes longer
        than later ones."""
        timed = self._windows.timed
        left = new
        if not last:
            waits = self._windows.waits_for_more
            for number in [number for number in mix if number in timed and waits(key[1], timed[number])]:
                booked = self._first_runs.get((key, number), 0)
                runs = min(left, mix[number] - booked) if key in self._windows.of_key else 0
                del mix[number]
                if runs > 0:
                    self._first_runs[key, number] = booked + runs
                    self._book_program(key, runs, number, timed[number])
                    left -= runs
        weights = {number: count - self._first_runs.get((key, number), 0) for number, count in mix.items()}
        weights = {number: count for number, count in weights.items() if count > 0} or mix
        whole = sum(weights.values())
        for number, share in weights.items():
            runs = left * share // whole
            left, whole = left - runs, whole - share
            if runs and number in timed and timed[number].runs:
                self._book_program(key, runs, number, timed[number])
        return left

    def _book_program(self, key: Key, runs: int, number: int, timed: Timed) -> None:
        compiled = self._programs.get(number)
        top = program_frame(key[1], compiled)
        if timed.work:  # the host only hands it over, and how long that takes is not known here
            self._booked.put(key[0], (top,), [("call_time", runs, 0, 0, 0, 0.0)])
        else:
            wall_ns = timed.wall_ns * runs // timed.runs
            self._booked.put(key[0], (top,), [total("call_time", runs, wall_ns, timed.shortest_ns, timed.longest_ns)])
        self._book_work(key, top, runs, compiled, timed)
        for operation, (count, whole_ps, self_ps, shortest_ps, longest_ps) in timed.operations.items():
            times = max(round(count * runs / timed.runs), 1)
            spent_ns = round(self_ps * runs / timed.runs / 1000)
            call_ns = round(whole_ps * runs / timed.runs / 1000)
            parts = compiled.parts_of(operation) if compiled is not None else ()
            spent, called = _Split(spent_ns), _Split(call_ns)
            for position, part in enumerate(parts):
                last = position == len(parts) - 1
                own_ns, part_ns = spent.next(part.share, last), called.next(part.share, last)
                shortest_ns, longest_ns = int(shortest_ps * part.share) // 1000, int(longest_ps * part.share) // 1000
                totals = [
                    own_total(times, own_ns, part_ns, longest_ns),
                    total("call_time", times, part_ns, shortest_ns, longest_ns),
                ]
                self._booked.put(key[0], (top, POOL, *part.frames), totals)

    def _book_work(self, key: Key, top: Frame, runs: int, compiled: Compiled | None, timed: Timed) -> None:
        """What devices did, below the operations that it was for."""
        for (operation, device, stream, name), (count, _, self_ps, shortest_ps, longest_ps) in timed.work.items():
            times = max(round(count * runs / timed.runs), 1)
            split = _Split(round(self_ps * runs / timed.runs / 1000))
            parts = compiled.parts_of(operation) if compiled is not None else (unknown(operation),)
            kernel = device_frame(name)
            where = (self._windows.device_type, device, stream)
            for position, part in enumerate(parts):
                own_ns = split.next(part.share, position == len(parts) - 1)
                shortest_ns, longest_ns = int(shortest_ps * part.share) // 1000, int(longest_ps * part.share) // 1000
                spent = total("gpu_time", times, own_ns, shortest_ns, longest_ns)
                self._booked.put(key[0], (top, *part.frames, kernel), [spent], where)


def device_frame(name: str) -> Frame:
    """The frame of a kernel, a copy or a collective of that name."""
    lower = name.lower()
    copies = lower.startswith(("memcpy", "memset"))
    kind = "copy" if copies else "collective" if lower.startswith(_LIBRARIES) or talks(name) else "kernel"
    return (kind, name, "", "", "", 0, 0, 0)


def _detail(compiled: Compiled | None) -> str:
    facts: dict[str, Any] = {"time": "estimated"}
    if compiled is not None and compiled.memory:
        facts["planned_bytes"] = compiled.memory
    if compiled is not None and compiled.held:
        facts["temporaries"] = compiled.held
    if compiled is not None and compiled.cached and compiled.moved:
        stale = f"{compiled.moved} have moved since" if compiled.moved > 0 else "they may have moved since"
        facts["lines"] = f"of the source that filled JAX's cache; {stale}"
    return json.dumps(facts)


def program_frame(name: str, compiled: Compiled | None) -> Frame:
    """The call of a program, `jit(f)`, with what is known of it."""
    return _program(name, _detail(compiled))


def _program(name: str, detail: str) -> Frame:
    return ("operator", name, "", "", detail, 0, 0, 0)


class _Split:
    """Whole numbers that add up to a value, by shares that add up to one."""

    def __init__(self, value: int) -> None:
        self._value = value
        self._given = 0
        self._reached = 0.0

    def next(self, share: float, last: bool) -> int:
        self._reached += share
        until = self._value if last else round(self._value * min(self._reached, 1.0))
        part, self._given = until - self._given, until
        return part
