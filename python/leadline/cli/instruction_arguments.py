"""Options of `leadline run` for the inside of GPU kernels."""

from __future__ import annotations

import argparse

from leadline.capture.config import GPU_METRICS, INSTRUCTION_MODES, REPLAYED_METRICS
from leadline.capture.errors import ProfileError
from leadline.cli.more_options import MoreOptions

INSTRUCTIONS = {"--instructions": f"--instructions={INSTRUCTION_MODES[0]}"}
"""What the option means where nothing follows it."""


def add_instruction_arguments(more: MoreOptions) -> None:
    """`--instructions` and what belongs to it."""
    more.add(
        "--instructions",
        default="",
        choices=INSTRUCTION_MODES,
        help="sample instructions of GPU kernels and their stall reasons; =serialised: one launch at a time, so that "
        "kernels do not overlap",
    )
    more.add("--no-code", action="store_true", help="with --instructions: do not store machine code")
    more.add(
        "--gpu-metrics",
        metavar="NAMES",
        help=f"read hardware counters of GPU kernels: {','.join(GPU_METRICS)}, or all",
    )
    more.add(
        "--replay",
        action="store_true",
        help="with --gpu-metrics: run some kernels several times to read all counters "
        f"({' and '.join(REPLAYED_METRICS)} needs it); kernels do not overlap meanwhile",
    )


def instruction_options(arguments: argparse.Namespace) -> dict[str, object]:
    """As the names of `Options`."""
    asked = _names(arguments.gpu_metrics, replay=arguments.replay)
    return {
        "instructions": arguments.instructions,
        "no_code": arguments.no_code,
        "gpu_metrics": asked,
        "replay": arguments.replay,
    }


def _names(text: str | None, *, replay: bool) -> list[str]:
    """What was asked for; wrong names stay, and are refused with the other options. Raises ProfileError for none."""
    if text is None:
        return []
    asked = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    if not asked:
        raise ProfileError(f"--gpu-metrics needs names: {', '.join(GPU_METRICS)}, or all.")
    every = [name for name in GPU_METRICS if replay or name not in REPLAYED_METRICS]
    return list(dict.fromkeys(one for name in asked for one in (every if name == "all" else [name])))
