"""Arithmetic intensity of every kind of kernel beside the machine's own ridge: bound by memory or by arithmetic?

Operations are those of multiplications and additions that an operator's shapes imply, bytes those that it declares, so
intensity is an upper bound of what caches can make of it. Times are of the host on the CPU.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option


class Roofline(Tool):
    """Operations per byte of each kernel, what it reached, and whether memory or arithmetic bounds it."""

    tool_name = "roofline"
    events = {"launch": ["kernel", "duration", "flops"], "touched": ["launch", "bytes"]}
    gigaflops = option(float, "0", "the machine's peak in 10^9 operations per second; 0: measured here")
    gigabytes = option(float, "0", "its memory bandwidth in 10^9 bytes per second; 0: measured here")

    def start(self) -> None:
        self.of_kernel = self.sums("launches", "time", "flops", "bytes")

    def launch(self, b: Batch) -> None:
        self.of_kernel.add(b["kernel"], launches=1, time=b["duration"], flops=b["flops"])

    def touched(self, b: Batch) -> None:
        self.of_kernel.add(self.launches.kernel[b["launch"]], bytes=b["bytes"])

    def finish(self, out: Out) -> None:
        totals = self.of_kernel.totals()
        kernels = self.of_kernel.keys()
        if not len(kernels):
            return
        peak, bandwidth = self._machine()
        ridge = peak / bandwidth
        rows = []
        for at in np.argsort(-totals["time"], kind="stable").tolist():
            flops, moved, took = (float(totals[name][at]) for name in ("flops", "bytes", "time"))
            intensity = flops / moved if moved else 0.0
            roof = min(peak, intensity * bandwidth) if flops else bandwidth
            reached = (flops if flops else moved) / took if took else 0.0
            rows.append(
                {
                    "kernel": self.names[kernels[at]],
                    "launches": totals["launches"][at],
                    "time": took,
                    "flop/byte": _three(intensity),
                    "Gflop/s": _three(flops / took) if took else 0,
                    "GB/s": _three(moved / took) if took else 0,
                    "of the roof": min(100.0, 100 * reached / roof) if roof else None,
                    "bound by": "arithmetic" if flops and intensity > ridge else "memory",
                }
            )
        out.table("kernels by time", rows, units={"time": "ns", "of the roof": "%"})
        source = "as given" if self.gigaflops and self.gigabytes else "measured on the CPU at the end of the run"
        said = f"Roof: {peak:.1f} Gflop/s, {bandwidth:.1f} GB/s, ridge at {ridge:.1f} flop/byte"
        out.text("machine", f"{said} ({source}).")

    def _machine(self) -> tuple[float, float]:
        """Gflop/s and GB/s; float32 products and copies with NumPy where they are not given."""
        peak, bandwidth = float(self.gigaflops), float(self.gigabytes)
        if not peak:
            a = np.ones((768, 768), np.float32)
            peak = max(2 * 768**3 / _ns(lambda: a @ a) for _ in range(6))
        if not bandwidth:
            source = np.ones(1 << 23, np.float64)
            target = np.empty_like(source)
            bandwidth = max(2 * source.nbytes / _ns(lambda: np.copyto(target, source)) for _ in range(4))
        return peak, bandwidth


def _three(value: float) -> float:
    return float(f"{value:.3g}")


def _ns(call: Any) -> float:
    before = time.perf_counter_ns()
    call()
    return float(max(1, time.perf_counter_ns() - before))
