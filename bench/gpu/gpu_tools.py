"""What `--backend sanitizer` finds on a GPU, beside the figures of the PASTA paper: the part `tools` of check.sh.

    python -m gpu_tools OUT WORK SECONDS       writes OUT/tools.md and OUT/tools.json

Each check is a program of its own (`gpu_tools_program.py`) under `leadline run`. On a machine without a GPU the same
steps run over the fake Compute Sanitizer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpu_run import rehearsing

from leadline.profiles import open_profile
from leadline.report.tool_join import join
from leadline.report.tools import tool_results

PAPER = {
    ("resnet50", "infer"): "ResNet-18 b32: 1497, 1232.13, 1024, 86.07, 64, 172.27",
    ("encoder", "infer"): "BERT b16: 487, 1179.64, 212.62, 75.23, 37.69, 141.75",
    ("decoder", "infer"): "GPT-2 b8: 583, 4148.10, 1493.85, 59.02, 25.08, 138",
    ("resnet50", "train"): "ResNet-18: 1542, 3165.13, 1024, 84.58, 43.25, 172.27",
    ("encoder", "train"): "BERT: 554, 5679.03, 235.47, 77.71, 37.97, 209.30",
    ("decoder", "train"): "GPT-2: 2004, 7862.10, 2240.77, 51.37, 24, 137.66",
}
"""Table V, on an A100: kernels; in MB footprint, working set, its mean, median and p90. Models here are of the kind,
not the same, so orders of magnitude compare. The paper's working set is the whole size of every tensor that a kernel
touches once."""
FIGURES = {
    "kernels by launches": "Figure 7: kernels by launches; in the paper im2col and ampere_sgemm lead",
    "blocks by how they are used": "Figure 13: blocks of 2 MB by how they are used (BERT)",
    "summary": "Table V",
    "working set of a launch": "Table V, of a launch: whole objects, and touched pages",
}
"""Tables that are printed whole, by their name."""
LIMIT = 20
"""Times slower than plain that a measured run may be."""
FASTER = 1000
"""Times that sums on the device are to be faster than sums on the host. The paper says 941 (A100) and 627 (3060) for
the same library, where the host's time is extrapolated from one kernel of ten to fifty."""
ACCESSES = 1 << 24
"""Of a launch that are kept for sums on the host: 400 MB."""
COMPARED = 20
"""Launches whose sums on the device and on the host are compared."""


def leadline_run(
    work: Path,
    name: str,
    program: list[str],
    *arguments: str,
    limit_s: float = 120,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[float, Any]:
    """Seconds that it took, and the profile; what it printed is in WORK/tools-NAME.log."""
    output = work / f"tools-{name}.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-o", str(output), *arguments, *program]
    begin = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=limit_s, env={**os.environ, **environment}
    )
    seconds = time.monotonic() - begin
    (work / f"tools-{name}.log").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"{name} ended with status {done.returncode}: {done.stderr[-600:]}")
    return seconds, open_profile(output)


def found(profile: Any, tool: str) -> dict[str, Any]:
    """What one tool has found."""
    return dict(tool_results(profile, tool)[0].found)


def program(*words: str) -> list[str]:
    return [str(Path(__file__).with_name("gpu_tools_program.py")), *words]


def plain(*words: str) -> tuple[float, float]:
    """Seconds of a run without tools, and of a pass in it."""
    begin = time.monotonic()
    done = subprocess.run([sys.executable, *program(*words)], check=True, capture_output=True, text=True, timeout=120)
    return time.monotonic() - begin, seconds_of(done.stdout)


def seconds_of(printed: str) -> float:
    """Of a pass, as the program has printed it."""
    return next(float(json.loads(line)["seconds"]) for line in printed.splitlines() if line.startswith('{"seconds"'))


def table(outputs: list[dict[str, Any]], name: str) -> list[list[Any]]:
    """Rows of one table, without call paths; empty where there is none."""
    for output in outputs:
        if output.get("kind") == "table" and output["name"] == name:
            return [[cell for cell in row if not isinstance(cell, dict)] for row in output["rows"]]
    return []


def figures(work: Path, model: str, mode: str) -> dict[str, Any]:
    """The paper's figures 7, 13 and 14 and a row of Table V from one run, and how much slower the run is."""
    plain_s, _ = plain(model, mode)
    tools = ("working_set", "kernel_frequency", "hotness", "memory_timeline")
    arguments = [word for tool in tools for word in ("--tool", tool)]
    name = f"{model}-{mode}"
    seconds, profile = leadline_run(work, name, program(model, mode), *arguments, "--backend", "sanitizer")
    by_tool = {tool: found(profile, tool) for tool in tools}
    ours = by_tool["working_set"]
    outputs = [output for one in by_tool.values() for output in one["outputs"]]
    return {
        "ok": ours["launches"] > 0 and (rehearsing() or seconds / plain_s <= LIMIT),
        "times slower, start included": round(seconds / plain_s, 2),
        "launches": ours["launches"],
        "lost": {tool: one["lost"] for tool, one in by_tool.items() if one["lost"]},
        "figures": {said: table(outputs, of)[:20] for of, said in FIGURES.items()},
        "Figure 14: memory over time": [output for output in outputs if output.get("kind") == "curve"],
        "paper (kernels, footprint, working set, mean, median, p90)": PAPER[model, mode],
    }


def without_copies(work: Path) -> dict[str, Any]:
    """What the paper's working sets miss: copies from global to shared memory."""
    rows = {}
    for name, value in (("with", "0"), ("without", "1")):
        with_environment = {"LEADLINE_SANITIZER_WITHOUT_COPIES": value}
        _, profile = leadline_run(work, f"copies-{name}", program("encoder"), "--tool", "working_set",
                                  "--backend", "sanitizer", environment=with_environment)  # fmt: skip
        rows[name] = table(found(profile, "working_set")["outputs"], "summary")
    return {"ok": all(rows.values()), **rows}


def device_and_host(work: Path) -> dict[str, Any]:
    """The same launches summed on the device and, from their stream, on the host: equal, and how much faster."""
    words = ("encoder", "one by one" if rehearsing() else "infer", "1")
    _, plain_pass = plain(*words)
    sets, passes, lost = {}, {}, {}
    arguments = ["--tool", "working_set", "--tool-option", f"working_set.rows={2 * COMPARED}", "--backend", "sanitizer"]
    first = 0 if rehearsing() else COMPARED  # of the second pass, if a pass has so many
    for where, accesses in (("device", 0), ("host", ACCESSES if not rehearsing() else 1 << 16)):
        chosen = ("--launch-range", f"{first}:{first + COMPARED}")
        name = f"sums-{where}"
        _, profile = leadline_run(work, name, program(*words), *arguments, *chosen,
                                  environment={"LEADLINE_SANITIZER_ON_THE_HOST": str(accesses)})  # fmt: skip
        passes[where] = seconds_of((work / f"tools-{name}.log").read_text())
        ours = found(profile, "working_set")
        sets[where], lost[where] = sorted(map(str, table(ours["outputs"], "largest launches"))), ours["lost"]
    more = {where: seconds - plain_pass for where, seconds in passes.items()}
    faster = more["host"] / max(more["device"], 1e-9)
    equal = bool(sets["device"]) and sets["device"] == sets["host"]
    return {
        "ok": equal and (rehearsing() or faster >= FASTER),
        "sums are equal": equal,
        "times faster on the device": round(faster, 1),
        "seconds of a pass": {"plain": plain_pass, **passes},
        "lost": lost,
        "paper (Figures 9 and 10)": "941 on an A100, 627 on a 3060",
    }


def graphs(work: Path) -> dict[str, Any]:
    """Kernels of a CUDA graph touch what they touch in eager code."""
    sets = {}
    for mode in ("infer", "graph"):
        _, profile = leadline_run(work, f"graph-{mode}", program("encoder", mode), "--backend", "sanitizer", "--tool",
                                  "working_set", "--tool-option", "working_set.rows=100000", "--tool-option",
                                  "working_set.page=512")  # fmt: skip
        rows = table(found(profile, "working_set")["outputs"], "largest launches")
        sets[mode] = sorted(f"{kernel}: {touched}" for kernel, _, _, touched, _ in rows)
    return {"ok": bool(sets["infer"]) and sets["infer"] == sets["graph"], "launches": len(sets["infer"]),
            "that differ": len(set(sets["infer"]) ^ set(sets["graph"]))}  # fmt: skip


def joined(work: Path) -> dict[str, Any]:
    """Tables of a run with tools meet the times of a run with CUPTI by call path."""
    _, memory = leadline_run(work, "join-memory", program("encoder"), "--tool", "kernel_frequency",
                             "--backend", "sanitizer")  # fmt: skip
    _, timing = leadline_run(work, "join-timing", program("encoder"))
    both = join(memory, timing)
    return {"ok": both.rows > 0 and (rehearsing() or both.matched >= 0.99 * both.rows), "rows": both.rows,
            "matched": both.matched}  # fmt: skip


def one_layer(work: Path) -> dict[str, Any]:
    """Launches of one layer, and no other; drawn launches belong to none."""
    arguments = ("--tool", "kernel_frequency", "--backend", "sanitizer", "--layer", r"layers\.7\b")
    _, profile = leadline_run(work, "layer", program("encoder"), *arguments)
    ours = found(profile, "kernel_frequency")
    paths = [cell["path"] for output in ours["outputs"] for row in output.get("rows", ()) for cell in row
             if isinstance(cell, dict)]  # fmt: skip
    theirs = all(any("layers.7" in word for word in path) for path in paths)
    return {"ok": theirs and bool(paths) != rehearsing(), "kernels": len(paths)}


def planted_nan(work: Path) -> dict[str, Any]:
    """A NaN in one layer's weights: the first kernel that stores one, and its line."""
    _, profile = leadline_run(work, "nan", program("nan"), "--tool", "value_check", "--backend", "sanitizer")
    said = (work / "tools-nan.log").read_text()
    return {"ok": "first at gpu_tools_program.py" in said, "lost": found(profile, "value_check")["lost"]}


def launch_range(work: Path) -> dict[str, Any]:
    """Launches 3 and 4, and no other."""
    arguments = ("--tool", "kernel_frequency", "--backend", "sanitizer", "--launch-range", "3:5")
    _, profile = leadline_run(work, "range", program("encoder"), *arguments)
    ours = found(profile, "kernel_frequency")
    rows = sum(len(output.get("rows", ())) for output in ours["outputs"])
    return {"ok": ours["launches"] == 5 and rows > 0, "launches_left_out": ours["launches_left_out"]}


def use_fakes(work: Path) -> None:
    """The fake Compute Sanitizer in place of a real one."""
    from tests.nvidia import fake_sanitizer

    compiler = os.environ.get("CXX", "g++")
    os.environ["LEADLINE_SANITIZER_LIBRARY"] = str(fake_sanitizer.build(work, compiler))
    text = work / "sanitizer-text"
    text.write_text(f"leadline fake patches\n{fake_sanitizer.build_patches(work, compiler)}")
    os.environ["LEADLINE_SANITIZER_TEXT"] = str(text)


def main() -> int:
    out, work, seconds = Path(sys.argv[1]), Path(sys.argv[2]).resolve(), float(sys.argv[3])
    until = time.monotonic() + seconds
    if rehearsing():
        use_fakes(work)
    checks: dict[str, Any] = {
        "planted NaN": (planted_nan,),
        "launch range": (launch_range,),
        "one layer": (one_layer,),
        "device and host": (device_and_host,),
        "graphs": (graphs,),
        "join": (joined,),
        "copies": (without_copies,),
        **{f"figures, {model}, {mode}": (figures, model, mode) for model, mode in PAPER},
    }
    results: dict[str, Any] = {}
    for name, (check, *arguments) in checks.items():
        if time.monotonic() > until - 20:
            results[name] = {"ok": None, "why": "There was no time left."}
            continue
        try:
            results[name] = check(work, *arguments)
        except (RuntimeError, subprocess.SubprocessError, KeyError, IndexError) as error:
            results[name] = {"ok": False, "why": str(error)[:600]}
        (out / "tools.json").write_text(json.dumps(results, indent=1, default=str))
        said = {name: one["ok"] if one["ok"] else one.get("why", "no") for name, one in results.items()}
        print(json.dumps({"ok": all(one["ok"] is not False for one in results.values()), **said}), flush=True)
    lines = ["# Event tools on the device", "", "| check | ok | |", "|---|---|---|"]
    for name, result in results.items():
        told = "; ".join(f"{key}: {str(value)[:300]}" for key, value in result.items() if key not in ("ok", "figures"))
        lines.append(f"| {name} | {result['ok']} | {told} |".replace("\n", " "))
    for name, result in results.items():
        for said, rows in result.get("figures", {}).items():
            lines += ["", f"## {said}: {name.removeprefix('figures, ')}", ""]
            lines += [f"- {', '.join(str(cell) for cell in row)}" for row in rows]
    (out / "tools.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if all(result["ok"] is not False for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
