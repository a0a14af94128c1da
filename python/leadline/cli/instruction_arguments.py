"""Options of `leadline run` for the inside of GPU kernels."""

from __future__ import annotations

import argparse

from leadline.capture.config import GPU_METRICS, INSTRUCTION_MODES

INSTRUCTIONS = {"--instructions": f"--instructions={INSTRUCTION_MODES[0]}"}
"""What the option means where nothing follows it."""


def add_instruction_arguments(parser: argparse.ArgumentParser) -> None:
    """`--instructions` and what belongs to it."""
    parser.add_argument(
        "--instructions",
        default="",
        choices=INSTRUCTION_MODES,
        help="sample the instructions of GPU kernels and why they wait; =serialised: launch by launch, which keeps "
        "kernels from overlapping (=continuous may be left out)",
    )
    parser.add_argument("--no-code", action="store_true", help="with --instructions: keep no machine code")
    parser.add_argument(
        "--gpu-metrics",
        default="",
        metavar="NAMES",
        help=f"read hardware counters of GPU kernels: {','.join(GPU_METRICS)}, or all",
    )


def instruction_options(arguments: argparse.Namespace) -> dict[str, object]:
    """As the names of `Options`."""
    asked = [name.strip() for name in arguments.gpu_metrics.split(",") if name.strip()]
    return {
        "instructions": arguments.instructions,
        "no_code": arguments.no_code,
        "gpu_metrics": list(GPU_METRICS) if "all" in asked else list(dict.fromkeys(asked)),
    }
