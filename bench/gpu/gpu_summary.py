"""Puts what the parts left in OUT into results.json and summary.md, with the machine they ran on.

python -m gpu_summary OUT
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any


def machine() -> dict[str, str]:
    """What a reader needs to compare; empty texts where a question has no answer here."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def load(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def word(ok: bool | None) -> str:
    return "not measured" if ok is None else "passed" if ok else "**failed**"


def summary(where: dict[str, str], correctness: dict[str, Any], cost: dict[str, Any]) -> str:
    lines = [f"# {where['gpu']}", "", ", ".join(f"{key} {value}" for key, value in where.items() if key != "gpu"), ""]
    lines += ["| check | result | seconds |", "|---|---|---|"]
    lines += [f"| {name} | {word(result['ok'])} | {result['seconds']} |" for name, result in correctness.items()]
    lines += ["", "| workload | result | Leadline | torch.profiler | Proton | further |", "|---|---|---|---|---|---|"]
    for name, verdict in cost.get("verdicts", {}).items():
        ratios = verdict.get("ratios", {})
        cells = [f"{ratios[tool]:.3f}" if tool in ratios else "" for tool in ("leadline", "torch", "proton")]
        further = {key: value for key, value in verdict.items() if key not in ("ok", "ratios")}
        lines.append(f"| {name} | {word(verdict['ok'])} | {' | '.join(cells)} | {json.dumps(further)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    out = Path(sys.argv[1])
    where = machine()
    correctness, cost = load(out / "correctness.json"), load(out / "cost.json")
    results = {"machine": where, "correctness": correctness, "cost": cost}
    (out / "results.json").write_text(json.dumps(results, indent=1))
    (out / "summary.md").write_text(summary(where, correctness, cost))


if __name__ == "__main__":
    main()
