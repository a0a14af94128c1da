"""Would managed memory on a device that is too small work, and with which prefetches? (Figures 11, 12 of PASTA.)

Replays what the launches touched through a model of residency (`leadline.tools.residency`) for demand paging, the two
prefetchers of the paper, and a plan with look-ahead, eviction by farthest next use and discard of dead tensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.managed_plan import make_plan
from leadline.tools.out import Out
from leadline.tools.residency import (
    BLOCK,
    AddressSpace,
    Launch,
    Machine,
    Simulator,
    look_ahead_plan,
    object_plan,
    tensor_plan,
)
from leadline.tools.tool import Tool, option

_MOST_LAUNCHES = 200_000


class UvmAdvisor(Tool):
    """What managed memory would cost with less memory than the program needs, and which prefetching helps."""

    tool_name = "uvm_advisor"
    events = {"launch": ["launch", "duration"], "touched": ["launch", "object", "first", "end"]}
    memory = option(bytes, "0", "memory of the device; 0: a third of what the program holds at most")
    ahead = option(int, "4", "launches that the plan looks ahead")
    link = option(float, "25", "bandwidth to the device in 10^9 bytes per second")
    fault = option(float, "30", "what a fault costs in addition to its copy, in microseconds")
    speed = option(float, "0", "kernels run so many times faster than here; 0: at 10^12 bytes a second")
    block = option(
        bytes, "2MiB", "unit of residency; smaller for toy models, and a fault then costs less in proportion"
    )
    plan = option(str, "", "file for the plan that `leadline tool uvm apply` runs a program by")
    pool = option(bytes, "20MiB", "the allocator's segments, which object-level prefetching moves as a whole")

    def start(self) -> None:
        self.durations = self.sums("duration")
        self.rows: list[tuple[Any, Any, Any, Any]] = []
        self.count = 0

    def launch(self, b: Batch) -> None:
        self.durations.add(b["launch"], duration=b["duration"])

    def touched(self, b: Batch) -> None:
        self.count += len(b)
        if self.count <= 10 * _MOST_LAUNCHES:
            self.rows.append(
                (np.asarray(b["launch"]), np.asarray(b["object"]), np.asarray(b["first"]), np.asarray(b["end"]))
            )

    def finish(self, out: Out) -> None:
        if not self.rows:
            return
        launches, pools, peak = self._program()
        room = int(self.memory) or max(BLOCK, peak // 3)
        table = []
        ample = room >= peak
        sizes = (
            [("fits", room)] if ample else [("fits", 2 * peak + BLOCK), (f"{peak / room:.2g} times too small", room)]
        )
        for label, memory in sizes:
            scale = BLOCK / self.block
            machine = Machine(int(memory * scale), self.link * scale, int(self.fault * 1000 / scale))
            simulator = Simulator(launches, machine)
            base = simulator.run()
            plans = {
                "on demand": None,
                "pool before each launch": object_plan(launches, pools),
                "tensors before each launch": tensor_plan(launches),
                f"plan, {self.ahead} launches ahead": look_ahead_plan(launches, self.ahead),
            }
            for name, plan in plans.items():
                outcome = base if plan is None else simulator.run(plan)
                table.append(
                    {
                        "memory": label,
                        "prefetch": name,
                        "time": outcome.total_ns,
                        "of on demand": round(outcome.total_ns / max(base.total_ns, 1), 3),
                        "faults": outcome.faults,
                        "moved": outcome.moved_bytes / scale,
                    }
                )
        out.table("time by the model", table, units={"time": "ns", "moved": "bytes"})
        if self.plan:
            self._write_plan(out, room)
        best = min((row for row in table if row["memory"] == sizes[-1][0]), key=lambda row: row["time"])
        out.text(
            "advice",
            f"The program holds {peak / 1e6:.1f} MB at most; with {room / 1e6:.1f} MB"
            f"{', in which all of it fits,' if ample else ''} `{best['prefetch']}` is fastest, "
            f"{best['of on demand']:.2f} of the time on demand. This is a model with {self.link:g} GB/s and "
            f"{self.fault:g} µs per fault, not a measurement.",
        )

    def _write_plan(self, out: Out, room: int) -> None:
        uses: dict[int, list[int]] = {}
        for launch, thing, _, _ in self.rows:
            for number, one in zip(launch.tolist(), thing.tolist(), strict=True):
                uses.setdefault(number, []).append(one)
        lasting = frozenset(one for one in range(len(self.objects)) if self.objects.category(one) == "parameter")
        last = max(uses)
        kernels = [self.names[self.launches.kernel[number]] for number in range(last + 1)]
        sizes = [int(self.objects.bytes[one]) for one in range(len(self.objects))]
        made = make_plan(kernels, [uses.get(n, []) for n in range(last + 1)], sizes, lasting, room, self.ahead)
        made.write(Path(self.plan))
        steps = made.steps.values()
        counts = (sum(len(getattr(step, key)) for step in steps) for key in ("prefetch", "evict", "discard"))
        there, back, gone = counts
        out.text(
            "plan",
            f"{self.plan}: {there:,} prefetches, {back:,} tensors sent back, {gone:,} discarded, over {last + 1:,} "
            f"launches. Run by it with leadline tool uvm apply {self.plan} program.py.",
        )

    def _program(self) -> tuple[list[Launch], dict[int, list[int]], int]:
        """The launches in order, the segment of each block, and the bytes that an allocator would need."""
        launch, thing, first, end = (np.concatenate([row[at] for row in self.rows]) for at in range(4))
        uses: dict[int, list[tuple[int, int, int]]] = {}
        last_use: dict[int, int] = {}
        rows = zip(launch.tolist(), thing.tolist(), first.tolist(), end.tolist(), strict=True)
        for number, one, begin, over in sorted(rows):
            uses.setdefault(number, []).append((one, begin, over))
            last_use[one] = number
        times = dict(zip(self.durations.keys().tolist(), self.durations.totals()["duration"].tolist(), strict=True))
        space, address = AddressSpace(), dict[int, int]()
        tenants: dict[int, int] = {}
        made = []
        for number, touched in uses.items():
            blocks: dict[int, None] = {}
            for one, begin, over in touched:
                if one not in address:
                    address[one] = space.take(one, int(self.objects.bytes[one]))
                    for block in self._blocks(address[one], int(self.objects.bytes[one])):
                        tenants[block] = tenants.get(block, 0) + 1
                blocks.update(dict.fromkeys(self._blocks(address[one] + begin, over - begin)))
            dead = []
            for one in {one for one, _, _ in touched}:
                if last_use[one] == number and self.objects.category(one) != "parameter":
                    space.give_back(one)
                    for block in self._blocks(address[one], int(self.objects.bytes[one])):
                        tenants[block] -= 1
                        if not tenants[block]:
                            dead.append(block)
            taken = times.get(number, 0.0) / self.speed if self.speed else len(blocks) * self.block / 1000
            made.append(Launch(tuple(blocks), int(taken), tuple(dead)))
        each = max(1, self.pool // self.block)
        count = -(-space.extent // self.block)
        pools = {
            block: list(range(block - block % each, min(count, block - block % each + each))) for block in range(count)
        }
        return made, pools, space.extent

    def _blocks(self, address: int, size: int) -> range:
        return range(address // self.block, (address + max(size, 1) - 1) // self.block + 1)
