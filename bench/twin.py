"""One of the six models of `workloads/twins` in one framework: `leadline run bench/twin.py torch mlp --steps 50`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import leadline
from workloads.twins import MODELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("torch", "jax"))
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    # one core for both: each framework has its own idea of how many threads a product is worth
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    module = importlib.import_module(f"workloads.twins.{arguments.model}")
    step = module.in_torch() if arguments.framework == "torch" else module.in_jax()
    for _ in range(arguments.steps):
        step()
        leadline.step()


if __name__ == "__main__":
    main()
