"""`leadline doctor --peak`: how fast this machine's devices multiply matrices and move memory, kept for MFU.

Per device and precision the best of several passes of a square matrix product, and of one copy that fits no cache. It
takes about half a minute on a CPU. A table of vendors' figures goes before what is measured here.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from leadline.analysis.devicerates import cpu_name, keep_rates, measured_rates, with_threads
from leadline.cli.errors import CommandError

_BUDGET_S = 2.0  # per device and precision
_CPU_SIZE, _GPU_SIZE = 1536, 8192
_COPY_BYTES = 1 << 28


def measure(budget_s: float = _BUDGET_S) -> str:
    """Measure, keep, and say what was found. Raises CommandError without torch or a place to keep it."""
    try:
        import torch
    except ImportError:
        raise CommandError("Peaks are measured with torch, which is not installed here.") from None
    host = {"hostname": platform.node(), "cpus": os.cpu_count()}
    devices = {cpu_name(host): torch.device("cpu")}
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        devices.setdefault(torch.cuda.get_device_name(index), torch.device("cuda", index))
    rates = {name: _rates(torch, device, budget_s) for name, device in devices.items()}
    try:
        path = keep_rates(rates)
    except OSError as error:
        raise CommandError(f"The measured peaks could not be stored: {error.strerror}.") from None
    lines = []
    for name, found in rates.items():
        lines.append(name)
        for what, rate in found.items():
            unit = f"{rate / 1e9:,.1f} GB/s" if what == "bytes_s" else f"{rate / 1e9:,.1f} GFLOP/s"
            lines.append(f"  {'memory' if what == 'bytes_s' else what:<8}{unit:>20}")
    return "\n".join(
        [
            *lines,
            "",
            f"Stored in {path}; `leadline.print_summary` uses it for MFU if no data sheet of the device is known.",
        ]
    )


_QUICK_S = 0.4
_LIMIT_S = 30.0


def measure_threads(threads: int) -> None:
    """Measure and keep what this machine's processors do with so many threads of an operator, in a process of its own
    and a few seconds; nothing where that is known already. Nothing is raised."""
    host = {"hostname": platform.node(), "cpus": os.cpu_count()}
    name = with_threads(host, threads)
    if threads < 1 or name in measured_rates():
        return
    text = (
        f"import torch, json; torch.set_num_threads({threads}); from leadline.cli.peak import _rates; "
        f"print(json.dumps(_rates(torch, torch.device('cpu'), {_QUICK_S}, 'fp32', 'bf16')))"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LEADLINE")}
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=_LIMIT_S, check=True, env=environment
        )
        keep_rates({name: json.loads(done.stdout)})


def _rates(torch: Any, device: Any, budget_s: float, *only: str) -> dict[str, float]:
    wait = torch.cuda.synchronize if device.type == "cuda" else _nothing
    size = _GPU_SIZE if device.type == "cuda" else _CPU_SIZE
    found: dict[str, float] = {}
    kinds = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    for name, kind in kinds.items():
        if only and name not in only:
            continue
        if name == "fp16" and device.type == "cpu":
            continue  # few CPUs have it, and the others take minutes
        try:
            left, right = (torch.randn(size, size, dtype=kind, device=device) for _ in range(2))
            out = torch.empty_like(left)
            seconds = _fastest(partial(torch.mm, left, right, out=out), wait, budget_s)
        except RuntimeError:
            continue  # no such products here
        found[name] = 2 * size**3 / seconds
    source = torch.zeros(_COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    found["bytes_s"] = 2 * _COPY_BYTES / _fastest(lambda: target.copy_(source), wait, budget_s)
    return found


def _fastest(work: Callable[[], object], wait: Callable[[], object], budget_s: float) -> float:
    """Seconds of the best pass, the first of which counts for nothing."""
    work()
    wait()
    best, until = float("inf"), time.perf_counter() + budget_s
    while time.perf_counter() < until or best == float("inf"):
        begin = time.perf_counter()
        work()
        wait()
        best = min(best, time.perf_counter() - begin)
    return best


def _nothing() -> None:
    pass
