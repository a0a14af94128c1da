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
from pathlib import Path
from typing import Any

from gpu_run import rehearsing

from leadline.profiles import open_profile
from leadline.report.tools import tool_results

PAPER = {
    "resnet50": "ResNet-18 b32, kernels 1497, footprint 1232.13 MB, WS 1024 MB, mean 86.07, median 64, p90 172.27",
    "encoder": "BERT b16, kernels 487, footprint 1179.64 MB, WS 212.62 MB, mean 75.23, median 37.69, p90 141.75",
    "decoder": "GPT-2 b8, kernels 583, footprint 4148.10 MB, WS 1493.85 MB, mean 59.02, median 25.08, p90 138",
}
"""Table V, inference on an A100. Models here are of the kind, not the same, so orders of magnitude compare.
Their `WS` is the whole size of every tensor that a kernel touches once."""
LIMIT = 20
"""Times slower than plain that a measured run may be."""


def leadline_run(work: Path, name: str, program: list[str], *arguments: str, limit_s: float = 120) -> tuple[float, Any]:
    """Seconds that it took, and the profile."""
    output = work / f"tools-{name}.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-o", str(output), *arguments, *program]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
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


def working_set(work: Path, model: str) -> dict[str, Any]:
    """Working sets with and without what copies to shared memory read, and how much slower the run is."""
    plain = time.monotonic()
    subprocess.run([sys.executable, *program(model)], check=True, capture_output=True, timeout=120)
    plain_s = time.monotonic() - plain
    seconds, profile = leadline_run(work, model, program(model), "--tool", "working_set", "--backend", "sanitizer")
    ours = found(profile, "working_set")
    os.environ["LEADLINE_SANITIZER_WITHOUT_COPIES"] = "1"
    try:
        _, without = leadline_run(work, f"{model}-without", program(model), "--tool", "working_set",
                                  "--backend", "sanitizer")  # fmt: skip
    finally:
        del os.environ["LEADLINE_SANITIZER_WITHOUT_COPIES"]
    return {
        "ok": ours["launches"] > 0 and (rehearsing() or seconds / plain_s <= LIMIT),
        "times slower, start included": round(seconds / plain_s, 2),
        "launches": ours["launches"],
        "lost": ours["lost"],
        "ours": ours["outputs"],
        "without copies to shared memory": found(without, "working_set")["outputs"],
        "paper": PAPER[model],
    }


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
    out, work, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    until = time.monotonic() + seconds
    if rehearsing():
        use_fakes(work)
    checks: dict[str, Any] = {f"working set, {model}": (working_set, model) for model in PAPER}
    checks |= {"planted NaN": (planted_nan,), "launch range": (launch_range,)}
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
    lines = ["# Event tools on the device", "", "| check | ok | |", "|---|---|---|"]
    for name, result in results.items():
        told = "; ".join(f"{key}: {str(value)[:300]}" for key, value in result.items() if key != "ok")
        lines.append(f"| {name} | {result['ok']} | {told} |")
    (out / "tools.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if all(result["ok"] is not False for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
