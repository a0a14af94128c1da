"""Correctness on a real GPU: each check runs programs in processes of their own and compares what came of them.

    python -m gpu_checks OUT

Writes OUT/correctness.json; exit status 1 when a check failed. The order is by worth: what time does not suffice for
is the least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.profile import Profile, open_profile

TIME_TOLERANCE = 0.01
ATTRIBUTED = 0.999
UNSEEN = "launched before measuring began"


def run(out: Path, program: str, tool: str, name: str = "", **environment: str) -> Path:
    """Run a program under a tool; the path of what the tool wrote. Raises when the program failed."""
    suffix = "leadline" if tool == "leadline" else "json"
    output = out / f"{name or program}-{tool}.{suffix}"
    command = [sys.executable, "-m", "gpu_programs", program, tool, str(output)]
    result = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=90
    )
    if result.returncode != 0:
        raise RuntimeError(f"{program} under {tool} failed:\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
    return output


def kernels(profile: Profile) -> tuple[Counter[str], dict[str, int]]:
    """Launches and nanoseconds per kernel name; copies and sets are counted by the names torch.profiler uses."""
    counts: Counter[str] = Counter()
    times: dict[str, int] = {}
    for kind in ("kernel", "copy", "collective"):
        for node in profile.tree.find(kind=kind):
            time_ns = node.exclusive("gpu_time")
            counts[node.name] += time_ns.count
            times[node.name] = times.get(node.name, 0) + time_ns.sum
    return counts, times


def trace_kernels(path: Path) -> tuple[Counter[str], dict[str, int]]:
    """The same from torch.profiler's Chrome trace."""
    events = json.loads(path.read_text())["traceEvents"]
    counts: Counter[str] = Counter()
    times: dict[str, int] = {}
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            counts[event["name"]] += 1
            times[event["name"]] = times.get(event["name"], 0) + round(float(event["dur"]) * 1000)
    return counts, times


def losses(profile: Profile) -> dict[str, int]:
    return {str(loss.kind.name): loss.count for loss in profile.losses if loss.count > 0}


def gpu_nodes(profile: Profile) -> list[list[str]]:
    return [[step.name for step in node.path()] for node in profile.tree.find(kind="kernel")]


def same_kernels_as_torch_profiler(out: Path) -> dict[str, Any]:
    """Kernel counts by name are equal, total time within 1 % (best of three runs each), nearly all attributed."""
    ours, theirs = [], []
    for number in range(3):
        ours.append(open_profile(run(out, "train", "leadline", f"train{number}")))
        theirs.append(trace_kernels(run(out, "train", "torch", f"train{number}")))
    counts, times = kernels(ours[0])
    their_counts, _ = theirs[0]
    best = min(sum(kernels(profile)[1].values()) for profile in ours)
    their_best = min(sum(their_times.values()) for _, their_times in theirs)
    lost = sum(
        node.exclusive("gpu_time").sum
        for kind in ("kernel", "copy", "collective")
        for node in ours[0].tree.find(kind=kind)
        if UNSEEN in [step.name for step in node.path()]
    )
    attributed = 1 - lost / max(sum(times.values()), 1)
    differing = {name: (counts[name], their_counts[name]) for name in counts | their_counts
                 if counts[name] != their_counts[name]}  # fmt: skip
    deviation = abs(best / their_best - 1)
    in_backward = [path for path in gpu_nodes(ours[0]) if "backward" in path]
    ok = not differing and deviation <= TIME_TOLERANCE and attributed >= ATTRIBUTED and bool(in_backward)
    return {
        "ok": ok, "kernels": sum(counts.values()), "differing": differing, "time_deviation": deviation,
        "attributed": attributed, "kernels_below_backward": len(in_backward), "losses": losses(ours[0]),
        "status": ours[0].meta["processes"][0]["available"]["nvidia"],
    }  # fmt: skip


def graphs(out: Path) -> dict[str, Any]:
    """Replayed kernels hang under the replay, then `captured at`, then the lines of the capture."""
    profile = open_profile(run(out, "graph", "leadline"))
    paths = [path for path in gpu_nodes(profile) if "captured at" in path]
    first = [path for path in paths if "first_layer" in path[path.index("captured at") :]]
    second = [path for path in paths if "second_layer" in path[path.index("captured at") :]]
    replays = sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel")
                  if "captured at" in [step.name for step in node.path()])  # fmt: skip
    return {"ok": bool(first) and bool(second) and replays >= 20, "replayed": replays, "losses": losses(profile),
            "example": first[:1]}  # fmt: skip


def graphs_captured_before(out: Path) -> dict[str, Any]:
    """Started after the capture: the kernels are all there, below the launch, and labelled."""
    profile = open_profile(run(out, "late-graph", "leadline"))
    labelled = [node for node in profile.tree.find(kind="kernel") if "graph" in node.detail]
    count = sum(node.exclusive("gpu_time").count for node in labelled)
    return {"ok": count >= 20 and losses(profile).get("GRAPH_CAPTURED_BEFORE", 0) == count, "labelled": count}


def nvtx(out: Path) -> dict[str, Any]:
    """Ranges of torch.cuda.nvtx are regions, with the kernels below them."""
    from leadline.capture.providers.nvidia import injection_environment

    profile = open_profile(run(out, "nvtx", "leadline", **injection_environment({})))
    calls = Counter[str]()
    for node in profile.tree.find(kind="region"):
        calls[node.name] += node.exclusive("call_time").count
    below = [path for path in gpu_nodes(profile) if "outer" in path and "inner" in path]
    ok = calls["outer"] == 5 and calls["inner"] == 5 and calls["started"] == 1 and bool(below)
    return {"ok": ok, "calls": dict(calls), "kernels_below": len(below)}


def streams(out: Path) -> dict[str, Any]:
    """Work of four streams is told apart, waiting is on the call that waited, busy time is at most the span."""
    profile = open_profile(run(out, "streams", "leadline"))
    rows = profile.table("metrics")
    used = {int(stream) for stream in rows["stream"] if stream >= 0}
    waited = sum(node.exclusive("sync_time").sum for node in profile.tree.walk() if "Synchronize" in node.name)
    (device, *_) = profile.devices
    busy, idle = device.detail["busy_ns"], device.detail["idle_ns"]
    total = sum(node.exclusive("gpu_time").sum for node in profile.tree.walk())
    return {"ok": len(used) >= 5 and waited > 0 and 0 < busy <= total, "streams": sorted(used), "waited_ns": waited,
            "busy_ns": busy, "idle_ns": idle, "gpu_time_ns": total}  # fmt: skip


def compiled(out: Path) -> dict[str, Any]:
    """A Triton kernel of Inductor names the operators and the line it was fused from."""
    profile = open_profile(run(out, "compiled", "leadline", TORCHINDUCTOR_CACHE_DIR=str(out / "inductor")))
    generated = [node for node in profile.tree.find(kind="kernel") if node.name.startswith("triton_")]
    operators = {operator for node in generated for operator in node.detail.get("operators", [])}
    lines = {source["code"] for node in generated for source in node.detail.get("sources", [])}
    phases = {node.name for node in profile.tree.find(kind="phase")}
    ok = {"aten.relu", "aten.sigmoid"} <= operators and any("sigmoid" in line for line in lines) and "compile" in phases
    return {"ok": ok, "kernels": [node.name for node in generated], "operators": sorted(operators),
            "lines": sorted(lines), "phases": sorted(phases)}  # fmt: skip


COEXISTENCE = """
import sys, torch, leadline
value = torch.randn(512, 512, device="cuda")
def work(n):
    for _ in range(n):
        value @ value
    torch.cuda.synchronize()
work(3)
with leadline.profile(sys.argv[1], quiet=True):
    work(10)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        work(10)
    import time
    for _ in range(60):
        work(1)
        time.sleep(0.1)
    work(10)
seen = sum(event.count for event in profiler.key_averages() if event.device_type == torch.autograd.DeviceType.CUDA)
print("torch.profiler saw", seen)
assert seen >= 10, profiler.key_averages()
"""

TEARDOWN = """
import json, statistics, sys, time, torch, leadline
from gpu_programs import timed, workload
step = workload("decode")
timed(step, 200)
before = min(timed(step, 200) for _ in range(5))
stops, sizes = [], []
for number in range(3):
    leadline.start(sys.argv[1], quiet=True)
    timed(step, 50)
    for _ in range(200):
        step()  # in flight at stop
    begin = time.perf_counter()
    leadline.stop()
    stops.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
timed(step, 200)
after = min(timed(step, 200) for _ in range(5))
print(json.dumps({"stop_s": stops, "before_s": before, "after_s": after}))
"""


def script(out: Path, name: str, text: str) -> tuple[Profile, str]:
    file, output = out / f"{name}.py", out / f"{name}.leadline"
    file.write_text(text)
    result = subprocess.run(
        [sys.executable, str(file), str(output)], capture_output=True, text=True, check=False, timeout=90
    )
    if result.returncode != 0:
        raise RuntimeError(result.stderr[-4000:])
    return open_profile(output), result.stdout


def coexistence(out: Path) -> dict[str, Any]:
    """torch.profiler inside a measured program gets its kernels; Leadline says that it yielded, and goes on."""
    profile, printed = script(out, "coexistence", COEXISTENCE)
    counts, _ = kernels(profile)
    seen = losses(profile)
    return {"ok": seen.get("GPU_PAUSED", 0) == 1 and sum(counts.values()) >= 10, "losses": seen,
            "kernels": sum(counts.values()), "goes_on": sum(counts.values()) >= 20,
            "printed": printed.strip()}  # fmt: skip


def teardown(out: Path) -> dict[str, Any]:
    """Stop with work in flight under one second, three times; afterwards steps are as fast as before, within 0.5 %."""
    profile, printed = script(out, "teardown", TEARDOWN)
    figures = json.loads(printed.strip().splitlines()[-1])
    slower = figures["after_s"] / figures["before_s"] - 1
    counts, _ = kernels(profile)
    ok = max(figures["stop_s"]) < 1 and slower <= 0.005 and sum(counts.values()) > 0
    return {"ok": ok, **figures, "slower_after": slower, "kernels_in_third_session": sum(counts.values()),
            "losses": losses(profile)}  # fmt: skip


def recordings(out: Path) -> dict[str, Any]:
    """Streams of real calls and records, small enough to commit; CI replays them to the same folded result."""
    made = {}
    for program in ("graph", "streams"):
        path = out / "recordings" / f"{program}.txt"
        run(out, program, "leadline", f"{program}-recorded", LEADLINE_GPU_RECORDING=str(path))
        made[program] = path.stat().st_size
        if not Path(f"{path}.folded").stat().st_size:
            raise RuntimeError(f"The recording of {program} folded to nothing.")
    return {"ok": all(made.values()), "bytes": made}


CHECKS: tuple[Callable[[Path], dict[str, Any]], ...] = (
    same_kernels_as_torch_profiler, graphs, teardown, recordings, nvtx, streams, coexistence, compiled,
    graphs_captured_before,
)  # fmt: skip


def main() -> int:
    out = Path(sys.argv[1])
    results: dict[str, Any] = {}
    for check in CHECKS:
        begin = time.monotonic()
        try:
            result = check(out)
        except Exception as error:
            traceback.print_exc()
            result = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
        result["seconds"] = round(time.monotonic() - begin, 1)
        results[check.__name__] = result
        print(check.__name__, "passed" if result["ok"] else "FAILED", json.dumps(result, default=str)[:3000])
        (out / "correctness.json").write_text(json.dumps(results, indent=1, default=str))
    return 0 if all(result["ok"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
