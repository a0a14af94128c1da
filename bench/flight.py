"""What the flight recorder costs a collective.

    python bench/flight.py [--rounds 40] [--collectives 500] [--results FOLDER]

One process, one rank: `all_reduce` of one element over gloo, which then talks to nobody, so the cost is seen against
the cheapest collective there is. Modes take turns in one process: nothing measured; measured with the recorder's
wrappers of torch's methods taken away (the ring is still written); measured whole. The
fastest round of each counts, since machines are shared.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

import leadline
from common import add_results_option, machine, markdown_table, write_results
from leadline.capture.current import CURRENT


def round_ns(collectives: int, tensor: torch.Tensor) -> float:
    """Of one collective."""
    began = time.perf_counter_ns()
    for _ in range(collectives):
        dist.all_reduce(tensor)
    return (time.perf_counter_ns() - began) / collectives


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the flight recorder.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--collectives", type=int, default=500)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    torch.set_num_threads(1)
    tensor = torch.ones(1)
    modes: dict[str, list[float]] = {"not measured": [], "without wrappers": [], "measured": []}
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        leadline.start(Path(folder) / "a.leadline", quiet=True)
        session = CURRENT.session
        assert session is not None
        flight = next(one._flight for one in session._providers if one.name == "torch")  # type: ignore[attr-defined]
        round_ns(arguments.collectives, tensor)
        for _ in range(arguments.rounds):
            leadline.pause()
            flight.uninstall()
            modes["not measured"].append(round_ns(arguments.collectives, tensor))
            leadline.resume()
            modes["without wrappers"].append(round_ns(arguments.collectives, tensor))
            flight.install()
            modes["measured"].append(round_ns(arguments.collectives, tensor))
        leadline.stop()
        dist.destroy_process_group()
    fastest = {name: min(values) for name, values in modes.items()}
    plain = fastest["not measured"]
    rows = [[name, f"{ns / 1e3:.2f}", f"{(ns - plain) / 1e3:+.2f}"] for name, ns in fastest.items()]
    table = markdown_table(["mode", "a collective, µs", "more than not measured, µs"], rows)
    write_results(arguments.results, "flight", facts, {"fastest_ns": fastest}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
