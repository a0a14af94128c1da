"""One page of what was found: the machine, every check, the cost table; with reasons for what did not pass."""

from __future__ import annotations

import json
import platform
import subprocess
from typing import Any

from gpu_run import rehearsing

_LONGEST = 300
_HIDDEN = ("ok", "seconds", "ratios", "status", "device", "example")


def machine() -> dict[str, str]:
    """What a reader needs to compare."""
    facts = {"gpu": "fake GPU (rehearsal)", "python": platform.python_version(), "kernel": platform.release()}
    if rehearsing():
        return facts
    try:
        import torch

        facts |= {"gpu": torch.cuda.get_device_properties(0).name, "torch": str(torch.__version__),
                  "cuda": str(torch.version.cuda)}  # fmt: skip
        query = [
            "nvidia-smi",
            "--query-gpu=driver_version,clocks.sm,clocks.max.sm,power.limit",
            "--format=csv,noheader",
        ]
        facts["driver, clocks, power"] = subprocess.run(
            query, capture_output=True, text=True, check=False, timeout=20
        ).stdout.strip()
    except (RuntimeError, AssertionError, ImportError, OSError, subprocess.TimeoutExpired) as error:
        facts["gpu"] = f"unknown ({error})"
    return facts


def word(ok: bool | None) -> str:
    return "not done" if ok is None else "passed" if ok else "**failed**"


def summary(results: dict[str, Any]) -> str:
    """Markdown."""
    where = results["machine"]
    lines = [f"# {where['gpu']}", "", ", ".join(f"{key} {value}" for key, value in where.items() if key != "gpu"), ""]
    correctness, verdicts = results["correctness"], results["cost"].get("verdicts", {})
    if correctness:
        done = [result.get("ok") for result in correctness.values()]
        counts = f"{done.count(True)} of {len(done)} checks passed, {done.count(False)} failed"
        lines += [f"{counts}, {done.count(None)} were not done.", ""]
        lines += ["| check | result | seconds | |", "|---|---|---|---|"]
        for name, result in correctness.items():
            lines.append(f"| {name} | {word(result['ok'])} | {result['seconds']} | {reason(result)} |")
    if verdicts:
        lines += ["", "| workload | result | Leadline | torch.profiler | Proton | |", "|---|---|---|---|---|---|"]
        for name, verdict in verdicts.items():
            ratios = verdict.get("ratios", {})
            cells = [f"{ratios[tool]:.3f}" if tool in ratios else "" for tool in ("leadline", "torch", "proton")]
            lines.append(f"| {name} | {word(verdict['ok'])} | {' | '.join(cells)} | {facts_text(verdict)} |")
    pairs = results["whatif"].get("pairs", [])
    if pairs:
        lines += ["", "| change | predicted | measured | error |", "|---|---|---|---|"]
        for pair in pairs:
            predicted, measured = (pair["before_s"] / pair[key] for key in ("predicted_s", "after_s"))
            lines.append(f"| {pair['pair']} | {predicted:.2f}x | {measured:.2f}x | {pair['error']:+.1%} |")
    return "\n".join(lines) + "\n"


def reason(result: dict[str, Any]) -> str:
    """Of a check that did not pass: its error, or its figures."""
    if result["ok"]:
        return ""
    for key in ("error", "why"):
        if result.get(key):
            return one_line(str(result[key]))
    return facts_text(result)


def facts_text(facts: dict[str, Any]) -> str:
    return one_line(json.dumps({key: value for key, value in facts.items() if key not in _HIDDEN}, default=str))


def one_line(text: str) -> str:
    flat = " ".join(text.replace("|", "/").split())
    return flat if len(flat) <= _LONGEST else "... " + flat[-_LONGEST:]
