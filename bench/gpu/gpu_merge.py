"""Several runs of check.sh, or of single checks, as one page: of each check the last run that did it.

    python bench/gpu/gpu_merge.py NAME DATE RUN...     writes bench/results/NAME.md and .json

RUN is a folder: results.json of check.sh where it is there, what `python -m gpu_checks CHECK FOLDER` left, one
CHECK.json each, and `gpu_cost`'s cost.json. A check of which a folder has only an empty log was ended before it was
done.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu_checks import CHECKS
from gpu_summary import one_line, summary

FIGURES: dict[str, tuple[str, ...]] = {
    "same_kernels_as_torch_profiler": ("kernels", "differing", "time_deviation", "attributed"),
    "graphs": ("replayed",),
    "graphs_captured_before": ("labelled",),
    "teardown": ("stop_s", "slower_after", "kernels_in_third_session"),
    "coexistence": ("other_saw", "kernels"),
    "nvtx": ("calls",),
    "streams": ("waited_ns", "busy_ns", "gpu_time_ns"),
    "trace_window": ("kernels", "with_their_call", "before_their_call", "clock_uncertainty_ns"),
    "triton": ("places",),
    "collective": ("kernels",),
    "forked": ("kernels", "child_status"),
    "launched": ("measured", "kernels_in_nvtx_ranges"),
    "without_torch": ("sets",),
}
"""What is worth reading of a check that passed; the rest is in the file beside the page."""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The checks that a run did, by name."""
    path = folder / "results.json"
    found = json.loads(path.read_text())["correctness"] if path.exists() else {}
    checks = {name: result for name, result in found.items() if result.get("ok") is not None}
    for name in CHECKS:
        alone, log = folder / f"{name}.json", folder / f"{name}.log"
        if alone.exists():
            checks[name] = json.loads(alone.read_text())
        elif name not in found and log.exists():
            checks[name] = {"ok": False, "error": "ended before it was done", "seconds": None}
    for result in checks.values():
        if "error" in result:  # of a traceback the last line says what
            result["error"] = str(result["error"]).strip().splitlines()[-1]
    return checks


def merge(runs: Iterable[Path]) -> dict[str, Any]:
    """As results.json has it; `run` of each check counts from 1."""
    merged: dict[str, Any] = {"machine": {}, "correctness": {}, "cost": {}, "whatif": {}}
    for number, folder in enumerate(runs, 1):
        path = folder / "results.json"
        if path.exists():
            merged["machine"] |= json.loads(path.read_text())["machine"]
        if (cost := folder / "cost.json").exists():
            merged["cost"] = json.loads(cost.read_text())
        for name, result in read(folder).items():
            merged["correctness"][name] = {"run": number, **result}
    merged["correctness"] = {name: merged["correctness"][name] for name in CHECKS if name in merged["correctness"]}
    return merged


def without_places(text: str) -> str:
    """Files by their names in the repository and in site-packages: where these lay says nothing."""
    return re.sub(r"/[^\s\"']*/(?:site-packages|(?=bench/gpu/|leadline/))", "", text)


def page(merged: dict[str, Any], date: str) -> str:
    """Markdown."""
    lines = [summary(merged).rstrip(), "", f"Runs of {date}, by `bench/gpu/check.sh`.", "", "| check | run | figures |"]
    lines.append("|---|---|---|")
    for name, result in merged["correctness"].items():
        figures = {key: result[key] for key in FIGURES.get(name, ()) if key in result}
        text = one_line(", ".join(f"{key} {shown(value)}" for key, value in figures.items()))
        lines.append(f"| {name} | {result['run']} | {text} |")
    return "\n".join(lines) + "\n"


def shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    return json.dumps(value)


def main() -> int:
    name, date, *runs = sys.argv[1:]
    merged = merge(Path(run) for run in runs)
    results = Path(__file__).resolve().parents[1] / "results"
    merged = json.loads(without_places(json.dumps(merged)))
    (results / f"{name}.json").write_text(json.dumps(merged, indent=1) + "\n")
    (results / f"{name}.md").write_text(page(merged, date))
    return 0


if __name__ == "__main__":
    sys.exit(main())
