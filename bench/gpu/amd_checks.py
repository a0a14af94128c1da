"""Compares what Leadline measured of amd_program.py with what the program did: `amd_checks.py OUT TRUTH`.

Writes OUT/results.json and OUT/summary.md. Exit status: 0 when every check passed, 1 when one did not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import leadline
from leadline.profiles import Node, Profile

Truth = dict[str, int]


def _kernels(profile: Profile, function: str) -> list[Node]:
    found = profile.tree.find(kind="kernel")
    return [one for one in found if any(step.name.endswith(function) for step in one.path())]


def _sum(nodes: list[Node], metric: str) -> int:
    return sum(int(one.exclusive(metric).sum) for one in nodes)


def launches(profile: Profile, truth: Truth) -> str:
    for function in ("forward", "backward"):
        found = sum(int(one.exclusive("gpu_time").count) for one in _kernels(profile, function))
        if found != truth[function]:
            return f"{found} kernels below {function}(), which launched {truth[function]}"
    return ""


def names(profile: Profile, truth: Truth) -> str:
    strange = {one.name for one in _kernels(profile, "forward")} - {"turns"}
    return f"kernels are called {', '.join(sorted(strange))}" if strange else ""


def shapes(profile: Profile, truth: Truth) -> str:
    (kernel, *_) = _kernels(profile, "forward")
    wanted = {"grid_blocks": truth["grid"], "block_threads": truth["block"]}
    found = {name: int(kernel.exclusive(name).max) for name in wanted}
    shared = int(kernel.exclusive("static_shared_bytes").max + kernel.exclusive("dynamic_shared_bytes").max)
    if found != wanted:
        return f"{found} in place of {wanted}"
    return f"{shared} bytes of LDS, fewer than {truth['lds']}" if shared < truth["lds"] else ""


def resources(profile: Profile, truth: Truth) -> str:
    (kernel, *_) = _kernels(profile, "forward")
    missing = [name for name in ("registers", "scalar_registers", "occupancy") if kernel.exclusive(name).max <= 0]
    return f"no {', '.join(missing)}" if missing else ""


def latency(profile: Profile, truth: Truth) -> str:
    kernels = [*_kernels(profile, "forward"), *_kernels(profile, "backward")]
    if any(one.exclusive("launch_latency").min < 0 for one in kernels):
        return "a kernel began before its launch: the two clocks are not aligned"
    return "" if _sum(kernels, "launch_latency") > 0 else "no launch latency"


def copies(profile: Profile, truth: Truth) -> str:
    for word in ("HtoD", "DtoH"):
        found = _sum([one for one in profile.tree.find(kind="copy") if word in one.name], "copy_bytes")
        if found != truth["bytes"]:
            return f"{found} bytes {word}, and {truth['bytes']} were copied"
    return ""


def device(profile: Profile, truth: Truth) -> str:
    used = [one for one in profile.devices if one.detail.get("busy_ns")]
    if len(used) != 1:
        return f"{len(used)} devices were busy"
    detail = used[0].detail
    if not used[0].name or detail.get("vendor") != "AMD" or detail.get("wavefront") not in (32, 64):
        return f"{used[0].name!r}, {detail}"
    return ""


def lossless(profile: Profile, truth: Truth) -> str:
    return "; ".join(f"{one.count} {one.kind.name.lower()}: {one.detail}" for one in profile.losses if one.count)


def counters(profile: Profile, truth: Truth) -> str:
    """Of the run with counters."""
    counted = _sum([*profile.tree.find(kind="kernel")], "counted_time")
    if counted <= 0:
        return _said(profile, "counters") or "no kernel was counted, and nothing says why"
    taken = _sum([*profile.tree.find(kind="kernel")], "occupied_time")
    return "" if 0 < taken <= counted else f"{taken} ns occupied of {counted} ns counted"


def instructions(profile: Profile, truth: Truth) -> str:
    """Of the run with samples of instructions."""
    samples = _sum([*profile.tree.find(kind="instruction")], "instruction_samples")
    return "" if samples > 0 else _said(profile, "instructions") or "no sample, and nothing says why"


def _said(profile: Profile, part: str) -> str:
    details = profile.meta["available"]["amd"].get("details", {})
    return str(details.get(part, {}).get("message", ""))


CHECKS: dict[str, Callable[[Profile, Truth], str]] = {
    one.__name__: one for one in (launches, names, shapes, resources, latency, copies, device, lossless)
}
"""Each gives what is wrong, or nothing."""
MORE = {"counted.leadline": counters, "sampled.leadline": instructions}
"""Of runs of their own, where there are such."""


def main(out: Path, truth_file: Path) -> int:
    results: dict[str, Any] = {}
    try:
        profile, truth = leadline.open(str(out / "amd.leadline")), json.loads(truth_file.read_text())
    except (OSError, ValueError) as error:
        results["run"] = {"ok": False, "why": str(error)}
    else:
        checks = {name: (profile, check) for name, check in CHECKS.items()}
        for file, more in MORE.items():
            if (out / file).exists():
                checks[more.__name__] = (leadline.open(str(out / file)), more)
        for name, (one, check) in checks.items():
            try:
                why = check(one, truth)
            except Exception as error:  # one broken check must not hide the others
                why = f"{type(error).__name__}: {error}"
            results[name] = {"ok": not why, "why": why}
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = ["# AMD GPU", "", "| check | result |", "|---|---|"]
    lines += [f"| {name} | {'ok' if one['ok'] else one['why']} |" for name, one in results.items()]
    (out / "summary.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if all(one["ok"] for one in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
