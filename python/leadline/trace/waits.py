"""How the stretches of a trace were spent: each phase, step or operator of a thread divided into running, runnable and
blocked, with what it waited for in order of time.

The states of a thread are a partition of the recorded time, so the time of any stretch in a state is a difference of
two running sums. What lies outside the recorded time is *unseen* and never counted as anything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.states import State, States

Numbers = NDArray[np.int64]
_MOST_CAUSES = 5
_LEAST_SHARE = 0.01  # of a stretch; below it a cause is not told


@dataclass(frozen=True)
class Cause:
    """What a thread waited for. `state`: RUNNABLE (somebody held the CPU) or BLOCKED. `who`: the thread that held the
    CPU, or that ended the block; empty where that is not known. `call`: the system call."""

    state: State
    who: str
    call: str
    time_ns: int
    times: int

    def words(self) -> str:
        """As in: `cc1plus` held the CPU; in read until `pt_data_worker` woke it. Quoted, since a name may be `as`."""
        if self.state is State.RUNNABLE:
            return f"`{self.who}` held the CPU" if self.who else "the CPU was taken"
        place = f"in {self.call}" if self.call else "blocked"
        return f"{place} until `{self.who}` woke it" if self.who else place


@dataclass(frozen=True)
class Spent:
    """Where the time of some stretches of one thread went, in ns; the four add up to `wall_ns`."""

    wall_ns: int
    running_ns: int
    runnable_ns: int
    blocked_ns: int
    unseen_ns: int
    causes: tuple[Cause, ...]


class ThreadTime:
    """Answers for one thread. `states`: those of that thread only."""

    def __init__(self, states: States) -> None:
        self._states = states
        causes = [
            (int(state), states.names.get(other, f"thread {other}") if other >= 0 else "", str(call))
            for state, other, call in zip(
                states.state.tolist(), states.other.tolist(), states.reason.tolist(), strict=True
            )
        ]
        self._causes = {cause: number for number, cause in enumerate(dict.fromkeys(causes))}
        self._cause_of = np.array([self._causes[cause] for cause in causes], dtype=np.int64)

    def spent(self, start_ns: Numbers, end_ns: Numbers) -> Spent:
        """The time of the stretches [start, end), which do not overlap."""
        states = self._states
        wall = int((end_ns - start_ns).sum())
        by_cause = np.zeros(len(self._causes), dtype=np.int64)
        times = np.zeros(len(self._causes), dtype=np.int64)
        if len(states) and start_ns.size:
            first = np.searchsorted(states.end_ns, start_ns, side="right")
            last = np.searchsorted(states.start_ns, end_ns, side="left")
            for low, high, begin, end in zip(
                first.tolist(), last.tolist(), start_ns.tolist(), end_ns.tolist(), strict=True
            ):
                part = slice(low, high)
                inside = np.minimum(states.end_ns[part], end) - np.maximum(states.start_ns[part], begin)
                np.add.at(by_cause, self._cause_of[part], np.maximum(inside, 0))
                np.add.at(times, self._cause_of[part], 1)
        by_state = dict.fromkeys(State, 0)
        causes = []
        for (state, who, call), number in self._causes.items():
            by_state[State(state)] += int(by_cause[number])
            if state != State.RUNNING and by_cause[number] > _LEAST_SHARE * wall:
                causes.append(Cause(State(state), who, call, int(by_cause[number]), int(times[number])))
        seen = by_state[State.RUNNING] + by_state[State.RUNNABLE] + by_state[State.BLOCKED]
        return Spent(
            wall_ns=wall,
            running_ns=by_state[State.RUNNING],
            runnable_ns=by_state[State.RUNNABLE],
            blocked_ns=by_state[State.BLOCKED],
            unseen_ns=max(wall - seen, 0),
            causes=tuple(sorted(causes, key=lambda one: -one.time_ns)[:_MOST_CAUSES]),
        )
