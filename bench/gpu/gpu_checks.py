"""Correctness on a GPU: each check runs programs in processes of their own and compares what came of them.

    python -m gpu_checks NAME WORK       writes WORK/NAME.json

A result has `ok` (true, false, or null where the machine lacks what the check needs, then with `why`), and the figures
that a reader needs to see what went wrong without running it again.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_inside
import gpu_more_checks
from gpu_reading import (
    BELOW_GRAPH,
    CAPTURED_BEFORE,
    differences,
    gpu_time,
    kernel_paths,
    kernels,
    losses,
    sentences,
    status,
    trace_kernels,
)
from gpu_run import rehearsing, run

from leadline.profiles import open_profile

Result = dict[str, Any]

TIME_TOLERANCE = 0.01
ATTRIBUTED = 0.999
UNSEEN = "launched before measuring began"
SLOWER_AFTER = 0.005
STOP_LIMIT_S = 1.0


def same_kernels_as_torch_profiler(work: Path) -> Result:
    """Kernel counts by name are equal, total time within 1 % (best of three runs each), nearly all attributed."""
    ours, theirs = [], []
    for number in range(3):
        ours.append(open_profile(run(work, "train", "leadline", f"train{number}").output))
        theirs.append(trace_kernels(run(work, "train", "torch", f"train{number}").output))
    counts, times = kernels(ours[0])
    their_counts, _ = theirs[0]
    best = min((kernels(profile)[1] for profile in ours), key=lambda found: sum(found.values()))
    their_best = min((found for _, found in theirs), key=lambda found: sum(found.values()))
    lost = gpu_time(ours[0], lambda path: UNSEEN in path)
    attributed = 1 - lost / max(sum(times.values()), 1)
    differing = {name: (counts[name], their_counts[name]) for name in counts | their_counts
                 if counts[name] != their_counts[name]}  # fmt: skip
    deviation = abs(sum(best.values()) / max(sum(their_best.values()), 1) - 1)
    in_backward = sum("backward" in path for path in kernel_paths(ours[0]))
    allocated = sum(node.exclusive("device_alloc_bytes").sum for node in ours[0].tree.walk())
    ok = not differing and deviation <= TIME_TOLERANCE and attributed >= ATTRIBUTED and in_backward > 0
    return {
        "ok": ok, "kernels": sum(counts.values()), "differing": differing, "time_deviation": deviation,
        "largest_differences_ns": differences(best, their_best), "attributed": attributed,
        "kernels_below_backward": in_backward, "device_alloc_bytes": allocated, "losses": losses(ours[0]),
        "status": status(ours[0]),
    }  # fmt: skip


def recordings(work: Path) -> Result:
    """Streams of real calls and records, small enough to commit; CI replays them to the same folded result."""
    made = {}
    folder = work / "recordings"
    folder.mkdir(exist_ok=True)
    for program in ("graph", "streams", "short-train"):
        path = folder / f"{program}.txt"
        run(work, program, "leadline", f"{program}-recorded", environment={"LEADLINE_GPU_RECORDING": str(path)})
        made[program] = [path.stat().st_size, Path(f"{path}.folded").stat().st_size]
    return {"ok": all(all(sizes) for sizes in made.values()), "bytes": made}


def graphs(work: Path) -> Result:
    """Replayed kernels hang under the replay, then `captured at`, then the lines of the capture."""
    profile = open_profile(run(work, "graph", "leadline").output)
    paths = [path[path.index(BELOW_GRAPH) :] for path in kernel_paths(profile) if BELOW_GRAPH in path]
    first, second = (
        [path for path in paths if any(step.endswith(name) for step in path)]
        for name in ("first_layer", "second_layer")
    )
    replays = sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel")
                  if BELOW_GRAPH in [step.name for step in node.path()])  # fmt: skip
    return {"ok": bool(first) and bool(second) and replays >= 20, "replayed": replays, "losses": losses(profile),
            "example": first[:1]}  # fmt: skip


def graphs_captured_before(work: Path) -> Result:
    """Started after the capture: the kernels are all there, below the launch, labelled and told apart by node."""
    profile = open_profile(run(work, "late-graph", "leadline").output)
    labelled = [node for node in profile.tree.find(kind="kernel") if CAPTURED_BEFORE in [s.name for s in node.path()]]
    count = sum(node.exclusive("gpu_time").count for node in labelled)
    numbers = sorted({int(node.detail.get("node", -1)) for node in labelled})
    below = [[step.name for step in node.path()][-4:] for node in labelled[:1]]
    ok = count >= 20 and losses(profile).get("GRAPH_CAPTURED_BEFORE", 0) == count and len(numbers) >= 2
    return {"ok": ok, "labelled": count, "nodes": numbers, "losses": losses(profile), "sentences": sentences(profile),
            "example": below}  # fmt: skip


def teardown(work: Path) -> Result:
    """Stop with work in flight under one second, three times; afterwards steps are as fast as before, within 0.5 %."""
    ended = run(work, "teardown", "leadline", timeout_s=100)
    figures = ended.facts
    profile = open_profile(ended.output)
    slower = figures["after_s"] / figures["before_s"] - 1
    counts, _ = kernels(profile)
    ok = max(figures["stop_s"]) < STOP_LIMIT_S and sum(counts.values()) > 0
    fast = slower <= SLOWER_AFTER or rehearsing()  # nothing real is timed in a rehearsal
    return {"ok": ok and fast, **figures, "slower_after": slower, "kernels_in_third_session": sum(counts.values()),
            "finalized": status(profile).get("cupti_finalized"), "losses": losses(profile)}  # fmt: skip


def coexistence(work: Path) -> Result:
    """torch.profiler inside a measured program gets its kernels; Leadline says that it yielded, and goes on."""
    ended = run(work, "coexistence", "leadline")
    profile = open_profile(ended.output)
    counts, _ = kernels(profile)
    seen = losses(profile)
    shared = status(profile).get("subscription") == "shared"
    ok = ended.facts["other_saw"] >= 10 and sum(counts.values()) >= 10 and (shared or seen.get("GPU_PAUSED", 0) == 1)
    return {"ok": ok, **ended.facts, "kernels": sum(counts.values()), "goes_on": sum(counts.values()) >= 20,
            "losses": seen, "sentences": sentences(profile), "status": status(profile)}  # fmt: skip


def nvtx(work: Path) -> Result:
    """Ranges are regions, with the kernels below them."""
    from leadline.capture.providers.nvidia.files import injection_environment

    ended = run(work, "nvtx", "leadline", environment=injection_environment({}))
    if ended.facts.get("why"):
        return {"ok": None, **ended.facts}
    profile = open_profile(ended.output)
    calls = Counter[str]()
    for node in profile.tree.find(kind="region"):
        calls[node.name] += node.exclusive("call_time").count
    below = [path for path in kernel_paths(profile) if "outer" in path and "inner" in path]
    ok = calls["outer"] == 5 and calls["inner"] == 5 and calls["started"] == 1 and bool(below)
    return {"ok": ok, "calls": dict(calls), "kernels_below": len(below)}


def streams(work: Path) -> Result:
    """Work of four streams is told apart, waiting is on the call that waited, busy time is at most the work's time."""
    profile = open_profile(run(work, "streams", "leadline").output)
    rows = profile.table("metrics")
    used = sorted({int(stream) for stream in rows["stream"] if stream >= 0})
    waited = sum(node.exclusive("sync_time").sum for node in profile.tree.walk() if "Synchronize" in node.name)
    (device, *_) = profile.devices
    busy, idle = device.detail["busy_ns"], device.detail["idle_ns"]
    total = gpu_time(profile)
    return {"ok": len(used) >= 5 and waited > 0 and 0 < busy <= total, "streams": used, "waited_ns": waited,
            "busy_ns": busy, "idle_ns": idle, "gpu_time_ns": total, "device": device.detail}  # fmt: skip


CHECKS: dict[str, tuple[Callable[[Path], Result], float]] = {
    "same_kernels_as_torch_profiler": (same_kernels_as_torch_profiler, 130),
    "recordings": (recordings, 60),
    "graphs": (graphs, 40),
    "teardown": (teardown, 100),
    "coexistence": (coexistence, 60),
    "nvtx": (nvtx, 40),
    "streams": (streams, 40),
    "compiled": (gpu_more_checks.compiled, 90),
    "graphs_captured_before": (graphs_captured_before, 40),
    "trace_window": (gpu_more_checks.trace_window, 40),
    "triton": (gpu_more_checks.triton, 50),
    "collective": (gpu_more_checks.collective, 50),
    "forked": (gpu_more_checks.forked, 40),
    "hidden_devices": (gpu_more_checks.hidden_devices, 40),
    "launched": (gpu_more_checks.launched, 50),
    "without_torch": (gpu_more_checks.without_torch, 40),
    **gpu_inside.CHECKS,
}
"""By worth: what time does not suffice for is the least. Seconds that each may take."""


def main() -> int:
    name, work = sys.argv[1], Path(sys.argv[2])
    begin = time.monotonic()
    try:
        result = CHECKS[name][0](work)
    except Exception as error:
        traceback.print_exc()
        result = {"ok": False, "error": f"{type(error).__name__}: {error}"[-3000:]}
    result["seconds"] = round(time.monotonic() - begin, 1)
    (work / f"{name}.json").write_text(json.dumps(result, indent=1, default=str))
    print(json.dumps({"check": name, **result}, default=str)[:100_000])
    return 1 if result["ok"] is False else 0


if __name__ == "__main__":
    sys.exit(main())
