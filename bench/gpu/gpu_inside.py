"""The inside of kernels on a GPU: samples of instructions and hardware counters, of kernels whose faults are known.

python -m gpu_inside PROGRAM      (matmul, scattered, conflicts or copies; the checks start it)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_run import FAKES_VARIABLE, rehearsing

from leadline.analysis.analyze import analyze
from leadline.analysis.hardware import by_kernel
from leadline.profiles import Profile, open_profile
from leadline.report.kernel_source import KernelHeat, kernel_heat

Result = dict[str, Any]

IN_LOOP = 0.8
"""Of a matmul's samples: the rest is its begin and its end."""
SHARED = ("short_scoreboard", "mio_throttle")
SECONDS = 4.0
"""Of launches: windows open after the first hundred, and what is set up before them takes a second."""
_PER_WAIT = 20
_CUDA = r"""
extern "C" __global__ void scattered(const float* in, float* out, int rows, int columns) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < columns; ++i) sum += in[(long long)at * columns + i];
  if (at < rows) out[at] = sum;
}
extern "C" __global__ void conflicts(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32 * 32];
  float sum = 0;
  for (int i = 0; i < columns; ++i) {
    tile[threadIdx.x % 32 * 32 + threadIdx.x / 32] = sum + i;
    __syncthreads();
    sum += tile[threadIdx.x % 32 * 32 + (threadIdx.x / 32 + i) % 32];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum + in[0] * rows;
}
"""


def measured(work: Path, program: str, *options: str) -> Profile:
    """The profile of a program of this file under `leadline run`; raises RuntimeError with its last words."""
    output = work / f"inside-{program}{''.join(options)[:20]}.leadline"
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", str(output), *options]
    environment = {**os.environ, "LEADLINE_COUNTER_INTERVAL": "20"}
    if rehearsing():
        tests = Path(__file__).resolve().parents[2] / "tests"
        kernel = "_Z7rmsnormPK6__halfS1_PS_i"
        samples = f"{kernel},288,long_scoreboard,80 {kernel},336,lg_throttle,10 {kernel},1104,imc_miss,10"
        cubin = str(tests / "profiles/cubins/rmsnorm.sm_90.cubin")
        environment |= {"FAKES": os.environ[FAKES_VARIABLE], "KERNEL": kernel, "SAMPLES": samples, "CUBIN": cubin}
        environment["RATES"] = f"{kernel},50,30,60,900"
        environment["MEMORY"] = f"{kernel},4,3,1,32"
        command += [str(tests / "nvidia/sampled_program.py")]
    else:
        command += ["-m", "gpu_inside", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=80)
    if done.returncode != 0 or not output.exists():
        raise RuntimeError(f"{program} ended with status {done.returncode}:\n{done.stderr[-3000:]}")
    return open_profile(output)


def sampled(profile: Profile, name: str) -> tuple[KernelHeat | None, Result]:
    """The heat of a kernel (the hottest, in a rehearsal), and what sampling says of itself."""
    told = profile.meta["available"]["nvidia"].get("details", {}).get("instructions", {})
    found = kernel_heat(profile, None if rehearsing() else name)
    return (found[0] if found else None), {"sampling": told, "losses": [loss.detail for loss in profile.losses]}


def matmul(work: Path) -> Result:
    """Samples of a Triton matmul lie on the lines of its loop, told by its Python."""
    heat, told = sampled(measured(work, "matmul", "--instructions", "--budget", "20%"), "matmul_kernel")
    if heat is None:
        return {"ok": False, **told}
    first, last = (27, 28) if rehearsing() else _loop_lines()
    file = "rmsnorm.cu" if rehearsing() else "gpu_matmul.py"
    in_loop = [line.own for line in heat.lines if line.file.endswith(file) and first <= line.line <= last]
    inside = sum(in_loop) / max(heat.samples, 1)
    reasons = {reason.name: reason.samples for reason in heat.reasons}
    return {"ok": inside >= IN_LOOP, "in the loop": inside, "samples": heat.samples, "reasons": reasons, **told}


def planted(work: Path) -> Result:
    """A kernel with scattered accesses and one with bank conflicts are named, each on its own line."""
    result: Result = {"ok": True}
    for program, rules in (("scattered", ("uncoalesced", "stall")), ("conflicts", ("bank_conflicts", "stall"))):
        profile = measured(work, program, "--instructions", "--budget", "20%")
        heat, told = sampled(profile, program)
        found = [one for one in analyze(profile) if one.rule in rules]
        reasons = [reason.name for reason in heat.reasons[:2]] if heat else []
        named = bool(found) and (program == "scattered" or rehearsing() or any(one in SHARED for one in reasons))
        result["ok"] = result["ok"] and named
        result[program] = {"findings": [one.title for one in found], "reasons": reasons, **told}
    return result


def counters(work: Path) -> Result:
    """A matmul keeps matrix units busy and a copy the memory, by the device's own counters."""
    result: Result = {"ok": True}
    for program, name, least in (("matmul", "tensor", 0.1), ("copies", "dram", 0.4)):
        profile = measured(work, program, "--gpu-metrics", "all", "--budget", "20%")
        rows = by_kernel(profile.tree)
        most = max((getattr(row, name) or 0.0 for row in rows), default=0.0)
        result["ok"] = result["ok"] and most >= least
        told = profile.meta["available"]["nvidia"].get("details", {}).get("counters", {})
        result[program] = {"rows": [vars(row) for row in rows[:3]], "counting": told}
    return result


def replayed(work: Path) -> Result:
    """Kernels that are run again say how many pieces of memory a load takes and how many turns conflicts cost."""
    result: Result = {"ok": True}
    for program, name, least in (("scattered", "sectors", 20), ("conflicts", "conflicts", 0.3)):
        profile = measured(work, program, "--gpu-metrics", "all", "--replay", "--budget", "50%")
        rows = [row for row in by_kernel(profile.tree) if rehearsing() or row.name.startswith(program)]
        most = max((getattr(row, name) or 0.0 for row in rows), default=0.0)
        result["ok"] = result["ok"] and most >= least
        told = profile.meta["available"]["nvidia"].get("details", {}).get("replay", {})
        losses = [loss.detail for loss in profile.losses]
        result[program] = {"rows": [vars(row) for row in rows[:3]], "replay": told, "losses": losses}
    return result


CHECKS: dict[str, tuple[Callable[[Path], Result], float]] = {
    "instructions": (matmul, 90),
    "planted": (planted, 120),
    "counters": (counters, 120),
    "replay": (replayed, 120),
}


def _loop_lines() -> tuple[int, int]:
    from gpu_matmul import LOOP

    return LOOP


def _launch(program: str) -> Callable[[], object]:
    import torch

    if program == "matmul":
        from gpu_matmul import multiply

        a, b = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(2))
        return lambda: multiply(a, b)
    if program == "copies":
        source, target = (torch.empty(1 << 26, device="cuda") for _ in range(2))
        return lambda: target.copy_(source * 2)
    kernel = torch.cuda._compile_kernel(_CUDA, program, nvcc_options=["-lineinfo"])
    rows, columns = 1 << 17, 256
    values, out = torch.randn(rows, columns, device="cuda"), torch.empty(rows, device="cuda")
    return lambda: kernel((rows // 1024, 1, 1), (1024, 1, 1), (values, out, rows, columns))


def main() -> int:
    import torch

    import leadline

    launch = _launch(sys.argv[1])
    launch()
    torch.cuda.synchronize()
    begin, launches = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        for _ in range(_PER_WAIT):
            launch()
        leadline.step()
        torch.cuda.synchronize()
        launches += _PER_WAIT
    print(f"{launches} launches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
