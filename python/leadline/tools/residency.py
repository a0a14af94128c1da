"""What managed memory would do on a device that is too small: residency in blocks, faults, prefetches, evictions.

A model, not a measurement: blocks of 2 MiB that belong to one object each, a link of fixed bandwidth, a fixed price for
every fault, and kernels that take the time they were measured to take. Copies that were asked for ahead overlap with
kernels, faults do not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BLOCK = 2 << 20


@dataclass(frozen=True)
class Machine:
    """`memory_bytes` of the device, the link, and what a fault costs beside its copy."""

    memory_bytes: int
    link_bytes_per_ns: float = 25.0
    fault_ns: int = 30_000


@dataclass(frozen=True)
class Launch:
    """One kernel: blocks that it reads or writes, its own time, and what dies after it."""

    blocks: tuple[int, ...]
    duration_ns: int
    dead: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """For each launch: blocks to bring before it, and to throw away after it. `farthest`: evict by farthest next use
    instead of least recent use."""

    prefetch: Sequence[Sequence[int]]
    discard: Sequence[Sequence[int]] = ()
    farthest: bool = False


@dataclass
class Outcome:
    """What it came to."""

    total_ns: float = 0.0
    faults: int = 0
    moved_bytes: int = 0
    evicted_dirty: int = 0
    peak_blocks: int = 0
    per_launch_ns: list[float] = field(default_factory=list)


class Simulator:
    """One pass over the launches of a program."""

    def __init__(self, launches: Sequence[Launch], machine: Machine) -> None:
        self._launches = launches
        self._machine = machine
        self._copy_ns = BLOCK / machine.link_bytes_per_ns
        self._room = max(1, machine.memory_bytes // BLOCK)
        self._uses: dict[int, list[int]] = {}
        for number, launch in enumerate(launches):
            for block in launch.blocks:
                self._uses.setdefault(block, []).append(number)

    def run(self, plan: Plan | None = None) -> Outcome:
        """Demand paging without a plan; otherwise what the plan says."""
        here: OrderedDict[int, None] = OrderedDict()  # least recently used first
        position = dict.fromkeys(self._uses, 0)
        valid: set[int] = set()  # has been written or brought before: a first touch moves nothing
        outcome = Outcome()
        link_free_ns = now_ns = 0.0
        for number, launch in enumerate(self._launches):
            needed = set(launch.blocks)
            wanted = list(plan.prefetch[number]) if plan is not None and number < len(plan.prefetch) else []
            for block in wanted:
                if block in here:
                    continue
                if len(here) >= self._room and not self._make_room(here, needed, plan, position, outcome):
                    continue
                if block in valid:
                    link_free_ns = max(link_free_ns, now_ns) + self._copy_ns
                    outcome.moved_bytes += BLOCK
                here[block] = None
            # What was asked for ahead must have come when the kernel needs it.
            if needed & set(wanted) & here.keys():
                now_ns = max(now_ns, link_free_ns) if number else now_ns
            for block in launch.blocks:
                if block in here:
                    here.move_to_end(block)
                    continue
                if len(here) >= self._room:
                    self._make_room(here, needed, plan, position, outcome, must=True)
                here[block] = None
                outcome.faults += 1
                now_ns += self._machine.fault_ns
                if block in valid:
                    now_ns += self._copy_ns
                    outcome.moved_bytes += BLOCK
            valid.update(launch.blocks)
            for block in launch.blocks:
                position[block] += 1
            now_ns += launch.duration_ns
            gone = plan.discard[number] if plan is not None and number < len(plan.discard) else ()
            for block in gone:
                here.pop(block, None)
                valid.discard(block)
            outcome.peak_blocks = max(outcome.peak_blocks, len(here))
        outcome.total_ns = now_ns
        return outcome

    def _make_room(
        self,
        here: OrderedDict[int, None],
        needed: set[int],
        plan: Plan | None,
        position: dict[int, int],
        outcome: Outcome,
        *,
        must: bool = False,
    ) -> bool:
        if plan is not None and plan.farthest:
            victims = [block for block in here if block not in needed]
            victim = max(victims, key=lambda block: self._next_use(block, position), default=None)
        else:
            victim = next((block for block in here if block not in needed), None)
        if victim is None:
            if not must:
                return False
            victim = next(iter(here))  # one kernel needs more than there is: it thrashes on itself
        del here[victim]
        outcome.moved_bytes += BLOCK
        outcome.evicted_dirty += 1
        return True

    def _next_use(self, block: int, position: dict[int, int]) -> float:
        uses = self._uses[block]
        at = position[block]
        return uses[at] if at < len(uses) else float("inf")


class AddressSpace:
    """Where an allocator that gives freed memory out again would put objects: first fit, in units of 512 bytes."""

    _UNIT = 512

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []  # (begin, end), ascending, apart
        self._taken: dict[int, tuple[int, int]] = {}
        self.extent = 0

    def take(self, one: int, size: int) -> int:
        """The address of a new object of `size` bytes."""
        size = max(self._UNIT, -(-size // self._UNIT) * self._UNIT)
        for at, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[at : at + 1] = [(begin + size, end)] if end - begin > size else []
                break
        else:
            begin, self.extent = self.extent, self.extent + size
        self._taken[one] = (begin, begin + size)
        return begin

    def give_back(self, one: int) -> None:
        """The object has died."""
        merged: list[tuple[int, int]] = []
        for begin, end in sorted([*self._free, self._taken.pop(one)]):
            if merged and merged[-1][1] == begin:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((begin, end))
        self._free = merged


def object_plan(launches: Sequence[Launch], whole: Mapping[int, Sequence[int]]) -> Plan:
    """Before each launch all blocks of each pool (`whole`: block to the blocks of its pool) that it touches."""
    return Plan([list(dict.fromkeys(one for block in launch.blocks for one in whole[block])) for launch in launches])


def tensor_plan(launches: Sequence[Launch]) -> Plan:
    """Before each launch the blocks of its own tensors."""
    return Plan([list(launch.blocks) for launch in launches])


def look_ahead_plan(launches: Sequence[Launch], ahead: int = 4) -> Plan:
    """Blocks of the launches to come, evicting what is needed last, and dropping what is dead without a copy."""
    prefetch = []
    for number in range(len(launches)):
        window = launches[number : number + 1 + ahead]
        prefetch.append(list(dict.fromkeys(block for launch in window for block in launch.blocks)))
    return Plan(prefetch, [launch.dead for launch in launches], farthest=True)
