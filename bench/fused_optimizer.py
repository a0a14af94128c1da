"""What `fused=True` and `foreach=True` spare of an optimizer on a CPU: the ground for the gain of `optimizer_loop`.

    python bench/fused_optimizer.py [--turns 9] [--results FOLDER]

Each optimizer updates the same parameters (a few large matrices, layers of a small model, many small vectors) in turns
with and without the option, in one process on one thread; only `step()` is timed. "spared" is the part of the loop's
time: the first two rows of sizes are arithmetic on memory, the last is calling operators.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from common import Spread, add_results_option, machine, markdown_table, write_results

SIZES: dict[str, list[tuple[int, ...]]] = {
    "3 of [2048, 2048]": [(2048, 2048)] * 3,
    "60 of [256, 256]": [(256, 256)] * 60,
    "400 of [16]": [(16,)] * 400,
}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Adam": ("Adam", {}, {"fused": True}),
    "AdamW": ("AdamW", {}, {"fused": True}),
    "Adagrad": ("Adagrad", {}, {"fused": True}),
    "SGD with momentum": ("SGD", {"momentum": 0.9}, {"fused": True}),
    "SGD": ("SGD", {}, {"fused": True}),
    "RMSprop": ("RMSprop", {}, {"foreach": True}),
    "NAdam": ("NAdam", {}, {"foreach": True}),
    "RAdam": ("RAdam", {}, {"foreach": True}),
}
"""Class, its options, and what is compared."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    add_results_option(parser)
    arguments = parser.parse_args()
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    facts = machine()
    rows, data = [], {}
    for sizes, shapes in SIZES.items():
        for name, (kind, options, option) in OPTIMIZERS.items():
            loop, other = (made(shapes, kind, {**options, **more}) for more in ({"foreach": False}, option))
            pairs = [(timed(loop), timed(other)) for _ in range(arguments.turns + 2)][2:]
            spared = [1 - b / a for a, b in pairs]
            data[f"{name}, {sizes}"] = spared
            spread = Spread.of(spared)
            rows.append(
                (
                    sizes,
                    name,
                    next(iter(option)),
                    f"{statistics.median(a for a, _ in pairs) / 1e6:.2f} ms",
                    f"{100 * spread.median:.0f} % ({100 * spread.low:.0f} to {100 * spread.high:.0f})",
                )
            )
    table = markdown_table(("parameters", "optimizer", "option", "loop", "spared: median (range)"), rows)
    write_results(
        arguments.results, "fused_optimizer", facts, {"spared": data}, table, script="bench/fused_optimizer.py"
    )
    return 0


def made(shapes: list[tuple[int, ...]], kind: str, options: dict[str, Any]) -> Any:
    """An optimizer whose parameters have gradients."""
    import torch

    parameters = [torch.nn.Parameter(0.02 * torch.randn(shape)) for shape in shapes]
    for one in parameters:
        one.grad = torch.randn_like(one)
    return getattr(torch.optim, kind)(parameters, lr=1e-3, **options)


def timed(optimizer: Any) -> int:
    """Nanoseconds of a step."""
    began = time.thread_time_ns()
    optimizer.step()
    return time.thread_time_ns() - began


if __name__ == "__main__":
    sys.exit(main())
