"""The cost table on a GPU: step time under nothing, Leadline, torch.profiler and Proton, as ratios within one run.

    python -m gpu_cost OUT.json SECONDS

Every figure is the best of interleaved rounds in fresh processes, so that a clock that changes hits all tools alike.
OUT.json is written anew after every round, so that what was measured is there however this ends.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_run import last_object, rehearsing

GPU_BOUND_LIMIT = 1.03
SAMPLED_LIMIT = 1.05
"""Of a GPT step whose kernels' instructions are sampled as usual."""
SAMPLED = "gpt"
DECODE_SHARE_LIMIT = 0.6
GROWTH_LIMIT = 0.05
GROWTH_LIMIT_BYTES = 32 << 20
"""Memory may grow by the bounded buffers that a short run has not needed yet."""
ROUNDS = 4
ONE_RUN_S = 60


@dataclass(frozen=True)
class Workload:
    """Steps to warm up, steps to time, and whether the host's launches bound it."""

    name: str
    warm_up: int
    steps: int
    launch_bound: bool


WORKLOADS = (Workload("decode", 200, 500, True), Workload("resnet50", 15, 40, False), Workload("gpt", 8, 20, False))
TOOLS = ("none", "leadline", "sampled", "torch", "proton")
LONG_STEPS = (1_000, 10_000)


def worker(workload: str, tool: str, warm_up: int, steps: int) -> None:
    """In a process of its own: print seconds per step, resident memory, file size, calls per step."""
    module = importlib.import_module("fake_programs" if rehearsing() else "gpu_workloads")
    step, timed = module.workload(workload), module.timed
    timed(step, warm_up)
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "out.leadline"))
        seconds = calls = 0.0
        if tool in ("leadline", "sampled"):
            import leadline

            inside: dict[str, Any] = {"instructions": "continuous"} if tool == "sampled" else {}
            with leadline.profile(output, quiet=True, **inside):
                timed(step, warm_up)
                seconds = timed(step, steps)
            status = leadline.open(output).meta["processes"][0]["available"]["nvidia"].get("details", {})
            calls = status.get("calls", 0) / (warm_up + steps)
        elif tool == "torch":
            import torch

            cuda = [] if rehearsing() else [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, *cuda]):
                timed(step, warm_up)
                seconds = timed(step, steps)
        elif tool == "proton":
            proton = importlib.import_module("triton.profiler")  # only where torch brings Triton

            session = proton.start(str(Path(folder, "proton")))
            timed(step, warm_up)
            seconds = timed(step, steps)
            proton.finalize(session)
        else:
            timed(step, warm_up)
            seconds = timed(step, steps)
        size = Path(output).stat().st_size if Path(output).exists() else 0
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    print(json.dumps({"seconds": seconds, "resident": resident, "size": size, "calls_per_step": calls}))


def measure(workload: str, tool: str, warm_up: int, steps: int) -> dict[str, Any]:
    """What the worker printed, or its last words as `error`."""
    command = [sys.executable, "-m", "gpu_cost", "worker", workload, tool, str(warm_up), str(steps)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ONE_RUN_S)
    except subprocess.TimeoutExpired:
        return {"error": f"did not end within {ONE_RUN_S} s"}
    found = last_object(result.stdout)
    if result.returncode != 0 or "seconds" not in found:
        return {"error": (result.stderr.strip().splitlines() or [f"status {result.returncode}"])[-1][-500:]}
    return found


class Table:
    """Seconds of every round per workload and tool, and what the best round left."""

    def __init__(self, path: Path, deadline: float) -> None:
        self.path = path
        self.deadline = deadline
        self.rounds: dict[str, dict[str, list[float]]] = {w.name: {} for w in WORKLOADS}
        self.best: dict[str, dict[str, dict[str, Any]]] = {w.name: {} for w in WORKLOADS}
        self.constant: dict[str, dict[str, Any]] = {}

    def measure_all(self) -> None:
        """The first round of everything, then growth, then further rounds while there is time."""
        self._round()
        for steps in (LONG_STEPS[0] // 10, LONG_STEPS[0]) if rehearsing() else LONG_STEPS:
            if time.monotonic() < self.deadline:
                self.constant[str(steps)] = measure("decode", "leadline", 50, steps)
                self.write()
        for _ in range(0 if rehearsing() else ROUNDS - 1):
            self._round()

    def _round(self) -> None:
        longest: dict[str, float] = {}
        for workload in WORKLOADS:
            for tool in TOOLS:
                if tool == "sampled" and workload.name != SAMPLED:
                    continue
                known = self.best[workload.name].get(tool)
                if (known is not None and "error" in known) or time.monotonic() + longest.get(tool, 0) > self.deadline:
                    continue
                begin = time.monotonic()
                got = measure(workload.name, tool, workload.warm_up, workload.steps)
                longest[tool] = max(longest.get(tool, 0), time.monotonic() - begin)
                if "seconds" in got:
                    self.rounds[workload.name].setdefault(tool, []).append(got["seconds"])
                if known is None or got.get("seconds", 1e9) < known.get("seconds", 1e9):
                    self.best[workload.name][tool] = got
                self.write()

    def write(self) -> None:
        """All that is known so far."""
        report = {"best": self.best, "rounds": self.rounds, "constant": self.constant,
                  "verdicts": judge(self.best, self.constant, self.rounds)}  # fmt: skip
        self.path.write_text(json.dumps(report, indent=1))


def judge(
    best: dict[str, Any], sizes: dict[str, Any], rounds: dict[str, dict[str, list[float]]] | None = None
) -> dict[str, Any]:
    """Ratios, and whether each reaches what it must; None where it was not measured.

    `noise` is how far the unprofiled rounds lie apart; tools closer than that cannot be told apart in this run.
    """
    verdicts: dict[str, Any] = {}
    for workload in WORKLOADS:
        seconds = {tool: value["seconds"] for tool, value in best[workload.name].items() if "seconds" in value}
        errors = {tool: value["error"] for tool, value in best[workload.name].items() if "error" in value}
        if "none" not in seconds or "leadline" not in seconds:
            verdicts[workload.name] = {"ok": None, "errors": errors}
            continue
        ratios = {tool: value / seconds["none"] for tool, value in seconds.items()}
        plain = (rounds or {}).get(workload.name, {}).get("none", [])
        noise = max(plain) / min(plain) - 1 if len(plain) > 1 else 0.0
        verdict: dict[str, Any] = {"ratios": ratios, "noise": noise, "rounds": len(plain)}
        if errors:
            verdict["errors"] = errors
        if workload.launch_bound:
            added = seconds["leadline"] - seconds["none"]
            calls = best[workload.name]["leadline"]["calls_per_step"]
            verdict["us_per_call"] = added / max(calls, 1) * 1e6
            share = added / max(seconds["torch"] - seconds["none"], 1e-12) if "torch" in seconds else None
            verdict["share_of_torch"] = share
            verdict["ok"] = None if share is None else share <= DECODE_SHARE_LIMIT
        else:
            others = [ratios[tool] for tool in ("torch", "proton") if tool in ratios]
            verdict["above_others"] = [ratios["leadline"] - other for other in others]
            close = all(ratios["leadline"] <= other + noise for other in others)
            verdict["ok"] = ratios["leadline"] <= GPU_BOUND_LIMIT and close
            verdict["ok"] = verdict["ok"] and ratios.get("sampled", 1.0) <= SAMPLED_LIMIT
        verdicts[workload.name] = verdict
    short, long = (sizes[steps] for steps in sorted(sizes, key=int)) if len(sizes) == 2 else ({}, {})
    if "resident" in short and "resident" in long:
        grown = long["resident"] - short["resident"]
        file_growth = long["size"] / max(short["size"], 1) - 1
        verdicts["constant"] = {"ok": grown <= GROWTH_LIMIT_BYTES and file_growth < GROWTH_LIMIT, "memory_bytes": grown,
                                "memory": grown / short["resident"], "file": file_growth}  # fmt: skip
    return verdicts


def main() -> int:
    if sys.argv[1] == "worker":
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return 0
    Table(Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])).measure_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
