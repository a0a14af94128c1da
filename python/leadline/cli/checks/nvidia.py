"""NVIDIA GPUs: driver, CUDA, CUPTI, who holds it, what is permitted, NVTX; each with the way to what is missing.

Asks the driver in a process of its own, so that the doctor never starts CUDA in this one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from leadline.cli.checks import FAILED, LIMITED, OK, Finding

TITLE = "NVIDIA GPU"
_TIMEOUT_S = 120
_PARAMETERS = Path("/proc/driver/nvidia/params")
_CAPABILITIES = Path("/proc/self/status")
_CAP_SYS_ADMIN = 21
_PERMIT = (
    'echo "options nvidia NVreg_RestrictProfilingToAdminUsers=0" > /etc/modprobe.d/nvidia-profiling.conf, then reboot; '
    "or give the process CAP_SYS_ADMIN (in a container: --cap-add SYS_ADMIN)"
)
_DRIVER_VERSION = Path("/sys/module/nvidia/version")
_PROBE = """
import ctypes, json, os, sys, time
answer = {"error": "", "devices": []}
try:
    cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
except OSError as error:
    answer["error"] = "no driver library (" + str(error) + ")"
    print(json.dumps(answer)); sys.exit()
version, count = ctypes.c_int(), ctypes.c_int()
started = cuda.cuInit(0)
cuda.cuDriverGetVersion(ctypes.byref(version))
answer["cuda"] = version.value
if started != 0:
    answer["error"] = "cuInit answers " + str(started)
    print(json.dumps(answer)); sys.exit()
cuda.cuDeviceGetCount(ctypes.byref(count))
for index in range(count.value):
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, 256, index)
    answer["devices"].append(name.value.decode())
if count.value:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    from leadline import _native
    from leadline.capture.providers.nvidia.files import cupti_candidates
    options = {"cupti_candidates": list(cupti_candidates())}
    if "samples" in sys.argv:
        import os
        os.environ.setdefault("LEADLINE_PC_PLACE", "created")  # nothing is launched here
        options.update(instructions="continuous", sample_window_s=0.0)
    if "metrics" in sys.argv:
        from leadline.capture.config import GPU_METRICS, REPLAYED_METRICS
        asked = [name for name in GPU_METRICS if name not in REPLAYED_METRICS]
        options.update(gpu_metrics=asked, instruction_budget=1.0)
    answer["attached"] = _native.attach_nvidia(options)
    cuda.cuCtxSetCurrent(context)
    cuda.cuCtxSynchronize()
    if "metrics" in sys.argv:  # another thread begins with them
        until = time.monotonic() + 5
        while time.monotonic() < until:
            found = _native.nvidia_status().get("counters", {})
            if found.get("message") or found.get("windows"):
                break
            time.sleep(0.05)
    answer["status"] = _native.nvidia_status()
    _native.detach_nvidia()
print(json.dumps(answer))
"""


def check() -> list[Finding]:
    """See `leadline.cli.checks`. No NVIDIA GPU is no fault; one that cannot be measured is."""
    answer = _ask()
    if answer["error"] and not answer.get("devices"):
        text = f"none can be used here: {answer['error']}"
        advice = "if this machine has a GPU, check whether `nvidia-smi` works"
        if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
            advice = "CUDA_VISIBLE_DEVICES is empty, which hides every GPU; unset it"
        return [Finding("driver", LIMITED, text, advice), _nvtx()]
    cuda = int(answer.get("cuda", 0))
    findings = [Finding("driver", OK, f"{_driver_version()}serves CUDA {cuda // 1000}.{cuda % 1000 // 10}")]
    devices = answer["devices"]
    if not devices:
        advice = "see CUDA_VISIBLE_DEVICES"
        return [*findings, Finding("devices", LIMITED, "this process is shown none", advice), _nvtx()]
    findings.append(Finding("devices", OK, ", ".join(devices)))
    return [*findings, *_cupti(answer), _permission(), *_sampling(answer), *_counting(answer), _start(), _nvtx()]


def _driver_version() -> str:
    """`580.159.03, ` where the kernel module says so; empty in sandboxes that hide it."""
    try:
        return f"{_DRIVER_VERSION.read_text().strip()}, "
    except OSError:
        return ""


def _ask(*what: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, *what], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"the driver did not answer within {_TIMEOUT_S} s"}
    except (ValueError, IndexError):
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"error": f"asking the driver failed ({reason})"}
    return answer


def _cupti(answer: dict[str, Any]) -> list[Finding]:
    attached, status = answer["attached"], answer["status"]
    if not attached["measuring"]:
        what, _, advice = str(attached["message"]).partition("; ")
        return [Finding("CUPTI", FAILED, what, advice)]
    mode = status["subscription"]
    text = f"{status['cupti_version']} at {status['cupti_path']}, {status['calls_followed']} calls followed"
    findings = [Finding("CUPTI", OK, text)]
    if len(status["copies"]) > 1:
        found = ", ".join(status["copies"])
        findings.append(Finding("copies of CUPTI", LIMITED, f"{len(status['copies'])}: {found}", "remove one of them"))
    if mode == "shared":
        findings.append(Finding("other tools", OK, "other tools that can share CUPTI may run at the same time"))
    else:
        text = "CUPTI serves one tool at a time here; Leadline yields to torch.profiler while that runs"
        findings.append(Finding("other tools", LIMITED, text, "CUPTI 13.3 or later can be shared"))
    exact = int(status["clock_uncertainty_ns"])
    findings.append(Finding("clocks", OK, f"GPU times are tied to the CPU's within {exact / 1000:.1f} µs"))
    graphs = "kernels of CUDA graphs are distinguished"
    if re.match(r"12(\.4)?$", str(status["cupti_version"])):
        findings.append(
            Finding("CUDA graphs", LIMITED, f"{graphs}, but CUPTI stays loaded after stop", "use CUDA 12.6")
        )
    else:
        findings.append(Finding("CUDA graphs", OK, graphs))
    return findings


def _permission() -> Finding:
    """Sampling instructions needs it, and nothing else that Leadline measures."""
    try:
        restricted = "RmProfilingAdminOnly: 1" in _PARAMETERS.read_text()
    except OSError:
        return Finding(
            "counters",
            LIMITED,
            "whether the driver permits them cannot be read; only --instructions and --gpu-metrics need it",
        )
    if not restricted:
        return Finding("counters", OK, "hardware counters and samples of instructions are open to users")
    if _is_admin():
        return Finding("counters", OK, "open to administrators, which this process is")
    return Finding(
        "counters",
        LIMITED,
        "closed to users (RmProfilingAdminOnly), so --instructions and --gpu-metrics measure nothing",
        _PERMIT,
    )


def _sampling(answer: dict[str, Any]) -> list[Finding]:
    """Whether instructions can be sampled, by trying: permission, another profiler, the driver's age. In one more
    process, so that what goes wrong there takes nothing else along."""
    if not answer["attached"]["measuring"]:
        return []
    tried = _ask("samples")
    told = tried.get("status", {}).get("instructions")
    if told is None:
        return [Finding("instructions", LIMITED, f"could not be tried: {tried['error'] or 'CUPTI did not answer'}")]
    if told["message"]:
        what, _, advice = str(told["message"]).partition("; ")
        return [Finding("instructions", LIMITED, what, advice)]
    return [Finding("instructions", OK, "can be sampled: leadline run --instructions")]


def _counting(answer: dict[str, Any]) -> list[Finding]:
    """The same for hardware counters, and which of them this device counts."""
    if not answer["attached"]["measuring"]:
        return []
    tried = _ask("metrics")
    told = tried.get("status", {}).get("counters")
    if told is None:
        return [Finding("GPU metrics", LIMITED, f"could not be tried: {tried['error'] or 'CUPTI did not answer'}")]
    if told["message"]:
        what, _, advice = str(told["message"]).partition("; ")
        return [Finding("GPU metrics", LIMITED, what, advice)]
    return [Finding("GPU metrics", OK, f"leadline run --gpu-metrics {','.join(told['metrics'])}")]


def _is_admin() -> bool:
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", _CAPABILITIES.read_text(), re.MULTILINE)
    except OSError:
        return False
    return found is not None and bool(int(found[1], 16) >> _CAP_SYS_ADMIN & 1)


def _start() -> Finding:
    """How Leadline learns that a program starts CUDA."""
    from leadline.capture.providers.nvidia.files import CUDA_VARIABLE, INJECT_LIBRARY

    injected = os.environ.get(CUDA_VARIABLE, "")
    if injected and Path(injected).name != INJECT_LIBRARY:
        text = f"{CUDA_VARIABLE} names another tool ({injected}): only torch reports it"
        return Finding("start of CUDA", LIMITED, text, f"unset {CUDA_VARIABLE}")
    return Finding("start of CUDA", OK, "the driver reports it under `leadline run`, torch everywhere")


def _nvtx() -> Finding:
    from leadline.capture.providers.nvidia.files import INJECT_LIBRARY, NVTX_VARIABLE, inject_library

    injected = os.environ.get(NVTX_VARIABLE, "")
    if injected and Path(injected).name != INJECT_LIBRARY:
        text = f"{NVTX_VARIABLE} names another tool ({injected}), which gets the ranges"
        return Finding("NVTX", LIMITED, text, f"unset {NVTX_VARIABLE}")
    if inject_library() is None:
        return Finding("NVTX", LIMITED, f"this installation has no {INJECT_LIBRARY}", "install leadline again with pip")
    return Finding("NVTX", OK, "ranges become regions under `leadline run`")
