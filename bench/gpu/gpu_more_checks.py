"""Further checks: compilers, the trace window, collectives, and processes that a launcher or a fork makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gpu_reading import kernel_paths, kernels, losses, sentences, status
from gpu_run import FAKES_VARIABLE, programs, run

from leadline.profiles import open_profile
from leadline.schema import EventKind

Result = dict[str, Any]


def compiled(work: Path) -> Result:
    """Kernels of Inductor name the operators and lines they were fused from, fresh and from the cache."""
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"), "TRITON_CACHE_DIR": str(work / "triton")}
    found: dict[str, Any] = {}
    good = True
    for kind in ("fresh", "cached"):
        ended = run(work, "compiled", "leadline", f"compiled-{kind}", environment=cache)
        if ended.facts.get("why"):
            return {"ok": None, **ended.facts}
        profile = open_profile(ended.output)
        generated = [node for node in profile.tree.find(kind="kernel") if node.name.startswith("triton_")]
        operators = sorted({operator for node in generated for operator in node.detail.get("operators", [])})
        lines = sorted({source["code"] for node in generated for source in node.detail.get("sources", [])})
        phases = {node.name: node.exclusive("call_time").sum for node in profile.tree.find(kind="phase")}
        explained = {"aten.relu", "aten.sigmoid"} <= set(operators) and any("sigmoid" in line for line in lines)
        good = good and explained and "compile" in phases and (kind == "cached" or "inductor" in phases)
        names = sorted({node.name for node in generated})
        found[kind] = {"kernels": names, "operators": operators, "lines": lines, "phases_ns": phases,
                       "losses": losses(profile)}  # fmt: skip
    return {"ok": good, **found}


def triton(work: Path) -> Result:
    """A hand-written Triton kernel names the file and line of its function."""
    ended = run(work, "triton", "leadline", environment={"TRITON_CACHE_DIR": str(work / "triton-own")})
    if ended.facts.get("why"):
        return {"ok": None, **ended.facts}
    profile = open_profile(ended.output)
    nodes = [node for node in profile.tree.find(kind="kernel") if node.name == "scale_kernel"]
    places = sorted({f"{Path(node.file).name}:{node.line}" for node in nodes})
    phases = sorted({node.name for node in profile.tree.find(kind="phase")})
    ok = places == [f"{ended.facts['file']}:{ended.facts['line']}"] and "compile" in phases
    return {"ok": ok, "places": places, "expected": ended.facts, "phases": phases, "losses": losses(profile)}


def trace_window(work: Path) -> Result:
    """Three steps of single events: every kernel has its call, begins after it, and points at its node."""
    ended = run(work, "window", "leadline")
    profile = open_profile(ended.output)
    events = profile.table("events")
    kinds, numbers = np.unique(events["kind"], return_counts=True)
    counts = {EventKind(int(kind)).name: int(number) for kind, number in zip(kinds, numbers, strict=True)}
    kernel = events["kind"] == int(EventKind.KERNEL)
    called = np.isin(events["kind"], [int(EventKind.API), int(EventKind.GRAPH_LAUNCH)])
    begins = dict(zip(events["correlation"][called].tolist(), events["start_ns"][called].tolist(), strict=True))
    pairs = list(zip(events["correlation"][kernel].tolist(), events["start_ns"][kernel].tolist(), strict=True))
    known = [start - begins[correlation] for correlation, start in pairs if correlation in begins]
    uncertainty = int(status(profile).get("clock_uncertainty_ns", 0))
    early = [delay for delay in known if delay < -uncertainty]
    nodes = {profile.tree.node(int(row)).kind for row in events["node"][kernel]}
    few = len(pairs) - len(known)  # launched before the window opened
    ok = len(pairs) > 0 and few <= 0.1 * len(pairs) and not early and nodes == {"kernel"}
    return {"ok": ok, "events": counts, "kernels": len(pairs), "with_their_call": len(known),
            "before_their_call": len(early),
            "latency_ns": [min(known, default=0), max(known, default=0)], "clock_uncertainty_ns": uncertainty,
            "losses": losses(profile)}  # fmt: skip


def collective(work: Path) -> Result:
    """torch's communication operator carries the collective and its process group."""
    ended = run(work, "collective", "leadline")
    if ended.facts.get("why"):
        return {"ok": None, **ended.facts}
    profile = open_profile(ended.output)
    details = [node.detail for node in profile.tree.find(name="record_param_comms")]
    kinds = sorted(node.name for node in profile.tree.find(kind="collective"))
    ok = any("allreduce" in str(detail.get("collective", "")) and "process_group" in detail for detail in details)
    return {"ok": ok, "details": details[:4], "kernels": kinds, "losses": losses(profile)}


def forked(work: Path) -> Result:
    """A fork after CUDA has started: the parent keeps its kernels, the child says in one sentence what it lacks."""
    ended = run(work, "forked", "leadline")
    profile = open_profile(ended.output)
    counts, _ = kernels(profile)
    said = [sentence for sentence in sentences(profile) if "fork" in sentence]
    expected = 1 if ended.facts["child_tried"] else 0
    ok = ended.facts["child_status"] == 0 and sum(counts.values()) >= 20 and len(said) == expected
    return {"ok": ok, **ended.facts, "kernels": sum(counts.values()), "sentences": said, "losses": losses(profile)}


def hidden_devices(work: Path) -> Result:
    """CUDA_VISIBLE_DEVICES="": the program runs as it would, and nothing is claimed to have been measured."""
    ended = run(work, "hidden", "leadline", environment={"CUDA_VISIBLE_DEVICES": ""})
    profile = open_profile(ended.output)
    found = status(profile)
    counts, _ = kernels(profile)
    return {"ok": not counts and found["ok"] is not True, **ended.facts, "status": found, "losses": losses(profile)}


def launched(work: Path) -> Result:
    """`leadline run` on a program that starts another: the GPU is measured in the one with CUDA; NVTX is set up."""
    output = work / "launched.leadline"
    program = ["-m", programs(), "launcher", "none", "unused"]
    command = [
        sys.executable,
        "-m",
        "leadline.cli.main",
        "run",
        "-q",
        "-o",
        str(output),
        "--",
        sys.executable,
        *program,
    ]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, check=False, timeout=80)
    if done.returncode != 0:
        raise RuntimeError(f"leadline run ended with status {done.returncode}: {done.stderr[-3000:]}")
    profile = open_profile(output)
    attached = [process["available"]["nvidia"]["ok"] for process in profile.meta["processes"]]
    below = sum("outer" in path for path in kernel_paths(profile))
    return {"ok": attached.count(True) == 1 and len(attached) >= 2, "measured": attached,
            "kernels_in_nvtx_ranges": below, "losses": losses(profile), "sentences": sentences(profile)}  # fmt: skip


WITHOUT_TORCH = """
import ctypes, sys
import leadline
def fill():
    for _ in range(10):
        assert cuda.cuMemsetD8Async(address, 1, ctypes.c_size_t(1 << 20), None) == 0
with leadline.profile(sys.argv[1], quiet=True):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
    fill()
    assert cuda.cuCtxSynchronize() == 0
"""


def without_torch(work: Path) -> Result:
    """A program that uses the driver only, and starts it after measuring began: the driver tells of it."""
    from leadline.capture.providers.nvidia.files import injection_environment

    program, output = work / "without_torch.py", work / "without-torch.leadline"
    program.write_text(WITHOUT_TORCH)
    environment = {**os.environ, **injection_environment({})}
    if fakes := os.environ.get(FAKES_VARIABLE):  # a rehearsal: the loader finds the fakes, CUPTI before any real one
        environment |= {"LD_LIBRARY_PATH": fakes, "LD_PRELOAD": f"{fakes}/libcupti.so.13", "FAKE_CUDA_NOT_STARTED": "1"}
    command = [sys.executable, str(program), str(output)]
    subprocess.run(command, env=environment, check=True, timeout=40)
    profile = open_profile(output)
    sets = list(profile.tree.find(kind="copy"))
    count = sum(node.exclusive("gpu_time").count for node in sets)
    in_place = [node for node in sets if "fill" in [step.name for step in node.path()]]
    ok = count == 10 and len(in_place) == len(sets)
    return {"ok": ok, "sets": count, "losses": losses(profile), "sentences": sentences(profile)}
