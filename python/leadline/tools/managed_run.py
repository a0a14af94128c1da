"""Runs a program with its tensors in managed memory and moves them by a plan.

python -m leadline.tools.managed_run [--discard] PLAN program.py ...
"""

from __future__ import annotations

import importlib
import runpy
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.tools.backends.declared_operators import OperatorFacts, Storages, facts_of, tensors_in
from leadline.tools.backends.dispatch import Everywhere
from leadline.tools.errors import ToolError
from leadline.tools.installed import MANAGED, installed, why_missing
from leadline.tools.managed_driver import ManagedDriver
from leadline.tools.managed_plan import ManagedPlan, Step
from leadline.tools.registry import Names, Objects


def _say(sentence: str) -> None:
    print(f"leadline: {sentence}", file=sys.stderr)


class Applier:
    """After each launch what the plan asks for; nothing more from the first launch on that is not the plan's.

    `streams(device)`: the stream for copies, which runs beside kernels, and the one that kernels run on.
    """

    def __init__(
        self,
        plan: ManagedPlan,
        driver: ManagedDriver,
        streams: Callable[[int], tuple[int, int]],
        *,
        discard: bool = False,
        say: Callable[[str], None] = _say,
    ) -> None:
        self.on = True
        self.calls = 0
        self.launches = 0
        self._plan = plan
        self._driver = driver
        self._streams = streams
        self._discard = discard and driver.discards
        self._say = say
        self._names = Names()
        self._objects = Objects()
        self._storages = Storages(self._objects)
        self._weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
        self._facts: dict[Any, OperatorFacts] = {}
        self._ranges: dict[int, tuple[int, int, int, Any]] = {}  # address, bytes, device, weak reference
        self._dying: dict[int, None] = {}  # nobody needs them any more, by the plan
        self._lock = threading.Lock()

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator, then move what the plan says; its result."""
        facts = self._facts.get(func)
        if facts is None:
            facts = self._facts[func] = facts_of(func, self._names, {})
        result = func(*args, **kwargs)
        if facts.touches and self.on:
            with self._lock:
                self._after(facts, args, kwargs, result)
        return result

    def _after(self, facts: OperatorFacts, args: Any, kwargs: Any, result: Any) -> None:
        uses, _ = self._storages.uses(facts, args, kwargs, result, 0)
        if not any(use.reads or use.writes for use in uses):
            return
        number, self.launches = self.launches, self.launches + 1
        kernels, sizes = self._plan.kernels, self._plan.sizes
        if number >= len(kernels) or kernels[number] != facts.name:
            recorded = kernels[number] if number < len(kernels) else "the end"
            self._stop(f"launch {number} is {facts.name}, and was {recorded} when the plan was made")
            return
        for tensor in tensors_in((args, kwargs, result)):
            one = self._storages.number(tensor)
            storage = tensor.untyped_storage()
            if one >= len(sizes) or sizes[one] != storage.nbytes():
                self._stop(f"a tensor of {facts.name} (launch {number}) has another size than when the plan was made")
                return
            if one not in self._ranges:
                device = tensor.device.index or 0
                self._ranges[one] = (storage.data_ptr(), storage.nbytes(), device, self._weak(storage))
        if self._dying:
            self._throw_away()
        step = self._plan.steps.get(number)
        if step is not None:
            self._move(step)

    def _move(self, step: Step) -> None:
        errors = set()
        for one in step.evict:
            if (known := self._living(one)) is not None:
                address, size, device = known
                errors.add(self._driver.to_host(address, size, self._streams(device)[0]))
        for one in step.prefetch:
            if (known := self._living(one)) is not None:
                address, size, device = known
                errors.add(self._driver.to_device(address, size, device, self._streams(device)[0]))
        if self._discard:
            self._dying.update(dict.fromkeys(step.discard))
        if errors - {0}:
            self._stop(f"the driver answered {max(errors)}")

    def _throw_away(self) -> None:
        """Contents of what the program has let go by now, where no other tensor has moved in. An operator's caller
        still holds its arguments, so that is a launch later than the last use at least."""
        for one in list(self._dying):
            address, size, device, weak = self._ranges.get(one, (0, 0, 0, None))
            if weak is not None and not weak.expired():
                continue
            del self._dying[one]
            if size and not self._taken(one, address, size):
                self.calls += 1
                if result := self._driver.discard([(address, size)], self._streams(device)[1]):
                    self._stop(f"the driver answered {result}")
                    return

    def _living(self, one: int) -> tuple[int, int, int] | None:
        address, size, device, weak = self._ranges.get(one, (0, 0, 0, None))
        if weak is None or weak.expired() or not size:
            return None
        self.calls += 1
        return address, size, device

    def _taken(self, one: int, address: int, size: int) -> bool:
        return any(
            other != one and at < address + size and address < at + length and not weak.expired()
            for other, (at, length, _, weak) in self._ranges.items()
        )

    def _stop(self, why: str) -> None:
        self.on = False
        self._say(f"the plan is not followed any further: {why}; the program runs on, with pages moved on demand.")


def _managed_pool(torch: Any) -> Any:
    """A pool of torch's allocator whose segments are managed memory."""
    if missing := why_missing(MANAGED):
        raise ToolError(f"{missing[0].upper()}{missing[1:]}.")
    library = str(installed(MANAGED))
    allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "leadline_managed_alloc", "leadline_managed_free")
    return torch.cuda.MemPool(allocator.allocator())


def main(words: list[str]) -> int:
    """The program's arguments follow its name."""
    discard = words[:1] == ["--discard"]
    file, program, *rest = words[discard:]
    try:
        plan = ManagedPlan.read(Path(file))
        torch: Any = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise ToolError(
                "A plan is applied on a GPU, and torch finds none here; `leadline tool uvm plan` needs none."
            )
        driver = ManagedDriver()
        pool = _managed_pool(torch)
    except (ToolError, ImportError) as error:
        _say(str(error))
        return 2
    side: dict[int, Any] = {}

    def streams(device: int) -> tuple[int, int]:
        if device not in side:
            side[device] = torch.cuda.Stream(device)
        return side[device].cuda_stream, torch.cuda.current_stream(device).cuda_stream

    applier = Applier(plan, driver, streams, discard=discard)
    sys.argv = [program, *rest]
    sys.path[0] = str(Path(program).resolve().parent)
    everywhere = Everywhere(applier)
    with torch.cuda.use_mem_pool(pool):
        everywhere.install()
        try:
            runpy.run_path(program, run_name="__main__")
        finally:
            applier.on = False
            everywhere.uninstall()
            _say(f"{applier.calls:,} calls moved tensors by the plan, over {applier.launches:,} launches.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
