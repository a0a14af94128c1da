"""A cost budget that holds itself: what measuring costs is taken from an allowance, and sources rest until it is paid.

The allowance grows by the budget's share of wall time, up to what `SAVED_S` seconds bring, and own cost is taken from
it. Where it is used up, and what is left still costs too much, the next source rests, in the order of `ORDER`; where
half of it has come back the last one goes on. So the mean cost of a run stays at the budget, whatever its events cost,
and nothing is switched back and forth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline._dataclass import dataclass, field
from leadline._own_cost import cost_ns
from leadline._own_thread import Flag
from leadline.capture.native import Native
from leadline.capture.providers import CanPause, Provider
from leadline.capture.records import ProcessRecord, Stats

if TYPE_CHECKING:
    from leadline.capture.session import Session

ORDER = ("CPU samples", "shapes", "all measuring")
"""What rests first, where it was asked for. Names of modules cost nothing while a model runs; of memory nothing can
rest by itself, since what is freed meanwhile would count as alive."""
SAVED_S = 10.0
LOOK_S = 0.5
_MOST_KEPT = 200


@dataclass
class Switch:
    """A source that can rest."""

    name: str
    off: Callable[[], None]
    on: Callable[[], None]


@dataclass
class Budget:
    """The account. `percent`: of wall time; `switches` in the order they go off. Times in ns."""

    percent: float
    switches: list[Switch]
    resting: int = 0
    """So many of the first switches are off."""
    times: int = 0
    kept: list[tuple[int, str, bool]] = field(default_factory=list)
    """(CLOCK_REALTIME, source, whether it went on): the first ones; `times` counts all."""
    off_ns: dict[str, int] = field(default_factory=dict)
    _credit_ns: float = 0.0
    _since_ns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._credit_ns = self.room_ns

    @property
    def room_ns(self) -> float:
        """The most that can be saved."""
        return self.percent / 100 * SAVED_S * 1e9

    def spend(self, cost_ns: float, wall_ns: int, now_ns: int) -> None:
        """Measuring has cost so much in so long a time, which ends now."""
        allowed_ns = self.percent / 100 * wall_ns
        self._credit_ns = min(self._credit_ns + allowed_ns - cost_ns, self.room_ns)
        if self._credit_ns < 0 and cost_ns > allowed_ns and self.resting < len(self.switches):
            self._set(self.switches[self.resting], False, now_ns)
            self.resting += 1
        elif self._credit_ns > self.room_ns / 2 and self.resting:
            self.resting -= 1
            self._set(self.switches[self.resting], True, now_ns)

    def close(self, now_ns: int) -> None:
        """What rests goes on."""
        while self.resting:
            self.resting -= 1
            self._set(self.switches[self.resting], True, now_ns)

    def facts(self, now_ns: int) -> dict[str, Any]:
        """For the process's record: the budget, what rested for how long until now, and the switches."""
        off = dict(self.off_ns)
        for name, since in self._since_ns.items():
            off[name] = off.get(name, 0) + now_ns - since
        switches = [{"at_ns": at, "source": name, "on": on} for at, name, on in self.kept]
        return {"percent": self.percent, "times": self.times, "off_ns": off, "switches": switches}

    def _set(self, switch: Switch, on: bool, now_ns: int) -> None:
        (switch.on if on else switch.off)()
        self.times += 1
        if len(self.kept) < _MOST_KEPT:
            self.kept.append((now_ns, switch.name, on))
        if on:
            self.off_ns[switch.name] = self.off_ns.get(switch.name, 0) + now_ns - self._since_ns.pop(switch.name)
        else:
            self._since_ns[switch.name] = now_ns


class BudgetKeeper:
    """Looks at the cost now and then (see `beside.Keeper`). `cost`: of the process so far, in ns."""

    def __init__(
        self,
        budget: Budget,
        cost: Callable[[], int],
        changed: Callable[[Mapping[str, Any]], None],
        *,
        wait: Callable[[Flag, float], bool] = Flag.wait,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._budget = budget
        self._cost = cost
        self._changed = changed
        self._wait = wait
        self._clock_ns = clock_ns
        self._began_ns = time.time_ns() - clock_ns()  # of this moment: clocks are set back

    def run(self, ended: Flag) -> None:
        """Keep to the budget until `ended` is set."""
        cost, wall = self._cost(), self._clock_ns()
        times = self._budget.times
        while not self._wait(ended, LOOK_S):
            cost_now, wall_now = self._cost(), self._clock_ns()
            self._budget.spend(max(cost_now - cost, 0), wall_now - wall, self._now_ns())
            cost, wall = cost_now, wall_now
            if self._budget.times != times:
                times = self._budget.times
                self._changed(self._budget.facts(self._now_ns()))

    def close(self) -> None:
        """The session ends: what rests goes on."""
        self._budget.close(self._now_ns())
        self._changed(self._budget.facts(self._now_ns()))

    def _now_ns(self) -> int:
        return self._began_ns + self._clock_ns()


def keep_budget(
    session: Session, providers: Sequence[Provider], record: ProcessRecord, write: Callable[[], None], native: Native
) -> BudgetKeeper:
    """For a session that runs; what there is to tell goes into its record."""

    def note(told: Mapping[str, Any]) -> None:
        record.budget = dict(told)
        write()

    can_pause = (one for one in providers if isinstance(one, CanPause) and one.pausable)
    everything = Switch(ORDER[-1], lambda: session.pause("budget"), lambda: session.resume("budget"))
    switches = [*(Switch(one.pausable, one.pause, one.resume) for one in can_pause), everything]
    switches.sort(key=lambda one: ORDER.index(one.name))
    return BudgetKeeper(
        Budget(session.options.budget, switches), lambda: cost_so_far(native, session.options.shapes), note
    )


def cost_so_far(native: Native, shapes: bool) -> int:
    """What measuring has cost this process, in ns. `shapes`: inputs of operators are recorded."""
    return int(cost_ns(Stats.of(native.stats()).cost, shapes))


def parse_percent(text: str) -> float:
    """From `1%` or `0.5 %`; raises ValueError."""
    number, percent, rest = text.strip().partition("%")
    value = float(number)
    if not percent or rest or not 0 < value <= 100:
        raise ValueError(text)
    return value
