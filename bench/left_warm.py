"""What a training step gains beside the time of what is taken out of it: the ground for the upper ends of gains.

    python bench/left_warm.py [--turns 15] [--results FOLDER]

A small training step runs by turns with other work between its steps, and without: matrix products of a frozen model, a
checkpoint, a copy of memory, many small operators, Python's garbage collector over many objects. Only the step itself
is timed, in CPU time of the thread. What is shorter without the other work (its data stays in the caches, its memory is
not given away) is no part of that work's time, and is saved with it all the same. "of both" is the part of the other
work in the time of both.
"""

from __future__ import annotations

import argparse
import gc
import io
import statistics
import sys
import time
from collections.abc import Callable

from common import Spread, add_results_option, machine, markdown_table, write_results

_STEPS, _WARM = 12, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    add_results_option(parser)
    arguments = parser.parse_args()
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    facts = machine()
    rows, spared = [], {}
    for width in (64, 256):
        step = training_step(width)
        for name, other in others().items():
            pairs = [(timed(step, other), timed(step, None)) for _ in range(arguments.turns)]
            gains = [1 - alone / beside for (beside, _), (alone, _) in pairs]
            part = statistics.median(around / (own + around) for (own, around), _ in pairs)
            spared[f"{name}, {width}"] = gains
            rows.append((str(width), name, f"{100 * part:.0f} %", _percent(Spread.of(gains))))
    table = markdown_table(("width of the step", "other work", "of both", "shorter without: median (range)"), rows)
    write_results(arguments.results, "left_warm", facts, {"spared": spared}, table, script="bench/left_warm.py")
    return 0


def _percent(spread: Spread) -> str:
    return f"{100 * spread.median:.0f} % ({100 * spread.low:.0f} to {100 * spread.high:.0f})"


def timed(step: Callable[[], None], other: Callable[[], object] | None) -> tuple[float, float]:
    """Median ns of the step, and of the other work."""
    own, around = [], []
    for _ in range(_STEPS + _WARM):
        began = time.thread_time_ns()
        step()
        between = time.thread_time_ns()
        if other is not None:
            other()
        own.append(between - began)
        around.append(time.thread_time_ns() - between)
    return statistics.median(own[_WARM:]), statistics.median(around[_WARM:])


def training_step(width: int) -> Callable[[], None]:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batch = torch.randn(64, width)

    def step() -> None:
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()

    return step


def others() -> dict[str, Callable[[], object]]:
    import torch

    frozen = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).requires_grad_(False)
    inputs, memory = torch.randn(256, 256), torch.zeros(4 << 20)
    small = [torch.randn(8) for _ in range(200)]
    words = {f"word {number}": [number] for number in range(50_000)}
    return {
        "products of a frozen model": lambda: frozen(inputs),
        "a checkpoint": lambda: torch.save(frozen.state_dict(), io.BytesIO()),
        "a copy of 16 MiB": memory.clone,
        "200 small operators": lambda: [one + 1 for one in small],
        "a garbage collection": lambda: (len(words), gc.collect()),
    }


if __name__ == "__main__":
    sys.exit(main())
