"""A plan for managed memory: after which launch each object is brought to the device, sent back or thrown away.

Objects are numbered in the order in which the program's operators first touch them, as `declared` numbers them, so a
plan fits every run of the same program. The planner knows all launches: it looks ahead, sends back what is needed last,
and throws away what nobody needs again.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline._output import write_text
from leadline.tools.errors import ToolError

VERSION = 1
PLAN_HEAD = b'{"leadline_managed_plan": '
"""How every plan begins."""
_NEVER = 1 << 62


@dataclass(frozen=True)
class Step:
    """What is asked of the driver after one launch; objects, in order."""

    evict: tuple[int, ...] = ()
    prefetch: tuple[int, ...] = ()
    discard: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.evict or self.prefetch or self.discard)


@dataclass(frozen=True)
class ManagedPlan:
    """`kernels`: the name of each launch, by which a run is recognised; `sizes`: bytes of each object; `steps` by
    launch, only those that ask for something."""

    memory_bytes: int
    ahead: int
    kernels: tuple[str, ...]
    sizes: tuple[int, ...]
    steps: dict[int, Step]

    def write(self, file: Path) -> None:
        """Raises OSError."""
        names = list(dict.fromkeys(self.kernels))
        number = {name: at for at, name in enumerate(names)}
        told = {
            "leadline_managed_plan": VERSION,
            "memory_bytes": self.memory_bytes,
            "ahead": self.ahead,
            "names": names,
            "kernels": [number[name] for name in self.kernels],
            "sizes": list(self.sizes),
            "steps": {
                at: {key: list(getattr(step, key)) for key in ("evict", "prefetch", "discard") if getattr(step, key)}
                for at, step in self.steps.items()
            },
        }
        write_text(file, json.dumps(told))

    @classmethod
    def read(cls, file: Path) -> ManagedPlan:
        """What `write` wrote; raises ToolError."""
        try:
            told: Any = json.loads(file.read_text())
            if int(told["leadline_managed_plan"]) > VERSION:
                raise ToolError(f"{file} was made by a newer Leadline; apply it with that one.")
            sizes = tuple(int(size) for size in told["sizes"])
            steps = {}
            for at, asked in told["steps"].items():
                step = Step(
                    *(tuple(int(one) for one in asked.get(key, ())) for key in ("evict", "prefetch", "discard"))
                )
                if any(not 0 <= one < len(sizes) for one in (*step.evict, *step.prefetch, *step.discard)):
                    raise ValueError(f"launch {at} names an object that there is not")
                steps[int(at)] = step
            kernels = tuple(str(told["names"][int(one)]) for one in told["kernels"])
            return cls(int(told["memory_bytes"]), int(told["ahead"]), kernels, sizes, steps)
        except FileNotFoundError:
            raise ToolError(f"There is no file {file}; make one with `leadline tool uvm plan`.") from None
        except OSError as error:
            raise ToolError(f"{file} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ToolError(
                f"{file} is no plan for managed memory ({error}); make one with `leadline tool uvm plan`."
            ) from None


def make_plan(
    kernels: Sequence[str],
    uses: Sequence[Sequence[int]],
    sizes: Sequence[int],
    lasting: frozenset[int],
    memory_bytes: int,
    ahead: int,
) -> ManagedPlan:
    """`uses`: objects of each launch. `lasting`: objects that live on after their last launch (parameters)."""
    planner = _Planner(uses, sizes, lasting, memory_bytes, ahead)
    steps = {at: step for at in range(len(uses)) if (step := planner.after(at))}
    return ManagedPlan(memory_bytes, ahead, tuple(kernels), tuple(sizes), steps)


class _Planner:
    """Follows what is on the device while launches go by."""

    def __init__(
        self, uses: Sequence[Sequence[int]], sizes: Sequence[int], lasting: frozenset[int], memory: int, ahead: int
    ) -> None:
        self._uses = [tuple(dict.fromkeys(of_launch)) for of_launch in uses]
        self._sizes = sizes
        self._lasting = lasting
        self._memory = memory
        self._ahead = ahead
        self._at: dict[int, list[int]] = {}
        for number, of_launch in enumerate(self._uses):
            for one in of_launch:
                self._at.setdefault(one, []).append(number)
        self._here: set[int] = set()
        self._used = 0

    def after(self, launch: int) -> Step:
        """What to ask for once `launch` has been given to the device."""
        for one in self._uses[launch]:  # what the plan did not bring came by faults, and drove something out
            if one not in self._here:
                self._free(self._sizes[one], launch, frozenset(self._uses[launch]), launch)
                self._bring(one)
        gone = tuple(one for one in self._uses[launch] if self._at[one][-1] == launch and one not in self._lasting)
        for one in gone:
            self._drop(one)
        evict: list[int] = []
        prefetch: list[int] = []
        wanted: set[int] = set()
        coming = 0  # bytes that launches of the window will make
        for later in range(launch + 1, min(launch + 1 + self._ahead, len(self._uses))):
            wanted.update(self._uses[later])
            for one in self._uses[later]:
                if one in self._here:
                    continue
                made = self._at[one][0] > launch
                if made and later > launch + 1:
                    continue
                room = self._free(self._sizes[one] + coming, launch, frozenset(wanted), later)
                if room is None:
                    return Step(tuple(evict), tuple(prefetch), gone)
                evict += room
                if made:
                    coming += self._sizes[one]
                else:
                    self._bring(one)
                    prefetch.append(one)
        return Step(tuple(evict), tuple(prefetch), gone)

    def _free(self, need: int, launch: int, wanted: frozenset[int], later: int) -> list[int] | None:
        """Drives out what is needed last until `need` bytes fit; None where only what is needed sooner is left."""
        out: list[int] = []
        if self._used + need <= self._memory:
            return out
        next_use = {one: self._next(one, launch) for one in self._here - wanted}
        for one in sorted(next_use, key=lambda one: (-next_use[one], one)):
            if next_use[one] <= later:
                break
            self._drop(one)
            out.append(one)
            if self._used + need <= self._memory:
                return out
        for one in out:  # no use without the whole
            self._bring(one)
        return None

    def _next(self, one: int, launch: int) -> int:
        at = self._at[one]
        position = bisect_right(at, launch)
        return at[position] if position < len(at) else _NEVER

    def _bring(self, one: int) -> None:
        self._here.add(one)
        self._used += self._sizes[one]

    def _drop(self, one: int) -> None:
        if one in self._here:
            self._here.discard(one)
            self._used -= self._sizes[one]
