"""The stages of a round, their steps with the seconds that each may take, and the sets that fit into one call."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import gpu_inside
from gpu_checks import CHECKS
from gpu_run import rehearsing


@dataclass(frozen=True)
class Step:
    """A process of its own. `{seconds}` in the command is what it may take, less `ending_s`."""

    name: str
    command: tuple[str, ...]
    limit_s: float
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    after_failure_of: str = ""
    """Only where the step of that name did not end as it should."""
    ending_s: float = 3
    traced: bool = False
    """Its calls into CUPTI that may wait are written down: after a hang the last is the one."""


def module(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


JAX = {
    "XLA_FLAGS": "--xla_gpu_autotune_level=0",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "JAX_COMPILATION_CACHE_DIR": "jax-cache",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""Choosing algorithms takes half a minute otherwise; what was compiled is there for the next process."""
JAX_QUICK = {name: value for name, value in JAX.items() if name != "JAX_COMPILATION_CACHE_DIR"}
KEPT = "kept"
"""The folder that comes back, below the one in which steps run."""
PAIRS = str(Path(__file__).with_name("whatif_pairs.py"))
ON = ("--device", "cpu", "--only", "encoder: fused Adam") if rehearsing() else ("--rounds", "3")
PLAIN = "plain"
SWITCHES: dict[str, dict[str, str]] = {
    "window of 50 ms": {"LEADLINE_PC_LAUNCHES": "0"},
    "synchronise on the launching thread": {"LEADLINE_PC_SYNC": "launch"},
    "without synchronising": {"LEADLINE_PC_SYNC": "off"},
    "without records": {"LEADLINE_PC_RECORDS": "none"},
    "without module callbacks": {"LEADLINE_PC_CODE": "off"},
    "buffers of CUPTI's own size": {"LEADLINE_PC_HARDWARE_MB": "0", "LEADLINE_PC_SCRATCH_MB": "0"},
    "serialised": {"LEADLINE_PC_MODE": "serialised"},
    "on a thread of ours, launch waiting": {"LEADLINE_PC_PLACE": "helper"},
    "since the context was created": {"LEADLINE_PC_PLACE": "created"},
    "all records": {"LEADLINE_PC_RECORDS": "all"},
    "window thread, as it hung": {"LEADLINE_PC_PLACE": "window", "LEADLINE_PC_RECORDS": "all"},
}
"""The hypotheses about sampling that hangs, each with its switch; docs/providers/nvidia.md has what they mean."""
IN_TORCH = "torch and Triton"
TRIED_IN_TORCH = ("on a thread of ours, launch waiting", "without module callbacks", "without records")
TINY_S = "1" if rehearsing() else "3"
COUNTING_S = "1.5" if rehearsing() else "6"


def _sampling(name: str, environment: Mapping[str, str], only_if: str = "") -> Step:
    command = module("gpu_attempt", "instructions", "scattered", TINY_S, "--instructions", "--budget", "20%")
    return Step(name, command, 13, environment, only_if, traced=True)


def _sampling_in_torch(name: str, environment: Mapping[str, str], only_if: str = "") -> Step:
    command = module("gpu_checks", "instructions", ".")
    return Step(name, command, 30, environment, only_if, traced=True)


def _counting(kernel: str, what: str) -> Step:
    options = ("--replay", "--budget", "50%") if what == "replay" else ("--budget", "20%")
    command = module("gpu_attempt", what, kernel, COUNTING_S, "--gpu-metrics", "all", *options)
    return Step(f"{what} of {kernel}", command, 22, traced=True)


def _cost(workload: str, group: str, limit_s: float, rounds: int = 7) -> Step:
    command = module("gpu_launch_cost", workload, group, str(rounds), "{seconds}")
    environment = {"torch": {"TEARDOWN_CUPTI": "1"}, "client": JAX if workload == "jax" else {}}.get(group, {})
    return Step(f"{workload} {group}", command, limit_s, environment, ending_s=4)


def _long(workload: str, group: str, limit_s: float) -> Step:
    """Turns that are long enough for what a first step costs (new call paths) not to be seen."""
    step = _cost(workload, group, limit_s)
    return replace(step, name=f"{step.name}, long turns", environment={**step.environment, "ROUND_TURN_S": "0.7"})


def _without_finalizing(workload: str) -> Step:
    """Where leaving CUPTI for good ends the process, its instrumentation stays between turns."""
    step = _cost(workload, "client", 40, rounds=3)
    environment = {**step.environment, "ROUND_NOT_FINALIZED": "1"}
    return replace(step, name=f"{step.name}, not finalised", environment=environment, after_failure_of=step.name)


def _checks(names: Collection[str]) -> tuple[Step, ...]:
    """Of check.sh, each for itself; what it keeps comes back."""
    return tuple(
        Step(name, module("gpu_checks", name, KEPT), limit_s)
        for name, (_, limit_s) in CHECKS.items()
        if name in names and name not in gpu_inside.CHECKS
    )


CORE = ("recordings", "graphs", "streams", "trace_window", "coexistence", "collective")
"""The checks that say most of what has changed, in a minute."""
STAGES: dict[str, tuple[Step, ...]] = {
    "instructions": (
        _sampling(PLAIN, {}),
        _sampling_in_torch(IN_TORCH, {}),
        *(_sampling(name, switches, PLAIN) for name, switches in SWITCHES.items()),
        *(_sampling_in_torch(f"{IN_TORCH}, {name}", SWITCHES[name], IN_TORCH) for name in TRIED_IN_TORCH),
    ),
    "counters": (
        _counting("multiplying", "counters"),
        _counting("copying", "counters"),
        _counting("scattered", "replay"),
        _counting("conflicts", "replay"),
    ),
    "cost decode": (
        _cost("decode", "client", 62),
        _without_finalizing("decode"),
        _cost("decode", "torch", 22),
        _cost("decode", "proton", 22),
    ),
    "cost resnet50": (
        _cost("resnet50", "client", 62),
        _without_finalizing("resnet50"),
        _cost("resnet50", "torch", 26),
        _cost("resnet50", "proton", 24),
    ),
    "proof": _checks(("graphs", "streams", "trace_window", "collective")),
    "cost decode parts": (_long("decode", "parts", 48),),
    "cost resnet50 parts": (_long("resnet50", "parts", 62),),
    "cost parts": (
        _long("resnet50", "parts", 62),
        _long("resnet50", "torch", 26),
        _long("resnet50", "proton", 24),
        _long("decode", "parts", 45),
    ),
    "instructions torch": (_sampling_in_torch(IN_TORCH, {}),),
    "cost jax": (_cost("jax", "client", 60), _without_finalizing("jax")),
    "suite": _checks(CORE),
    "jax": (Step("compiled and cached", module("gpu_jax_check", "{seconds}"), 40, JAX_QUICK),),
    "starts": (
        Step("100 starts", module("gpu_starts", "10" if rehearsing() else "100", "{seconds}"), 56, ending_s=11),
    ),
    "generate": (Step("a static cache and a graph", module("gpu_generate", "graph"), 25),),
    "tools": (Step("event tools", module("gpu_tools", KEPT, ".", "{seconds}"), 38, ending_s=-10),),
    "analyze": (Step("five programs", module("gpu_analyze", "{seconds}"), 58, JAX_QUICK, ending_s=5),),
    "whatif": (
        Step("pairs", (sys.executable, PAIRS, "--results", KEPT, *ON, "--seconds", "{seconds}"), 55, ending_s=8),
    ),
    "generate compiled": (Step("generate, compiled", module("gpu_generate", "compiled"), 45),),
    "cause": (_sampling("as it hung: the window thread", SWITCHES["window thread, as it hung"]),),
    "suite more": _checks(set(CHECKS) - set(CORE)),
}
"""In the order of their worth."""
LIMITS: dict[str, float] = {"instructions": 105, "counters": 75}
"""Seconds of a whole stage, where steps that hang could take the others' time."""
SLOWER = 4.0 if rehearsing() else 1.0
"""A rehearsal runs beside much else; only who hangs on purpose is to overrun there."""
SETS: dict[str, tuple[str, ...]] = {
    "first": ("instructions", "counters", "cost decode", "cost resnet50", "cost jax"),
    "second": (
        "suite",
        "jax",
        "starts",
        "generate",
        "tools",
        "analyze",
        "whatif",
        "cause",
        "generate compiled",
        "suite more",
    ),
    "third": (
        "jax",
        "instructions torch",
        "cost parts",
        "analyze",
        "starts",
        "whatif",
        "tools",
        "cost jax",
        "counters",
    ),
    "again": ("instructions", "counters", "cost decode", "cost resnet50"),
}
"""By call: each at most 280 s."""
