"""What counting one run of a compiled program of JAX costs, where the hook is native and its part in Python.

    python bench/run_hook.py [--results FOLDER]

The hook is called as JAX calls it, from a loop in Python, so an empty function in its place stands beside it. CPU time
of the calling thread, the least of 15 rounds.
"""

from __future__ import annotations

import argparse
import gc
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import leadline
from common import add_results_option, machine, markdown_table, write_results
from leadline import _native

ROUNDS, CALLS = 15, 20_000


def ns_each(call: Callable[..., Any], *arguments: Any) -> float:
    """Least CPU time of a call."""
    least = math.inf
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(CALLS):
            call(*arguments)
        least = min(least, (time.thread_time_ns() - begin) / CALLS)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    function = jax.jit(lambda x: x + 1)
    x = jnp.ones(4)
    given: tuple[Any, ...] = (function, (x,), {}, function(x))
    rows = [("an empty function", ns_each(lambda *_: None, *given))]
    with (
        tempfile.TemporaryDirectory() as folder,
        leadline.profile(Path(folder) / "x.leadline", quiet=True, memory=False),
    ):
        for _ in range(10):
            function(x)
        (hook,) = (one for one in gc.get_objects() if type(one) is _native.RunHook)
        rows.append(("the hook", ns_each(hook, *given)))
        rows.append(("the place alone", ns_each(_native.place)))
        hook.quiet_until_s = 0.0
        slow = next(one for one in gc.get_referents(hook) if getattr(one, "__name__", "") == "slow")
        rows.append(("its part in Python", ns_each(slow, *given)))
    report = markdown_table(["call", "ns"], [[name, f"{ns:.0f}"] for name, ns in rows])
    write_results(arguments.results, "run_hook", {**facts, "jax": jax.__version__}, {"ns": dict(rows)}, report)


if __name__ == "__main__":
    main()
