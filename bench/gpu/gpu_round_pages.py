"""The results of a round as Markdown: what each step found, and whose time a launch costs.

    python bench/gpu/gpu_round_pages.py OUT [OUT ...] [--results bench/results --date 2026-11-27]

Prints the pages; with --results they are written there as gpu_round.md and gpu_launch_cost.md, beside the lines that
they are made of (gpu_round.json). Of a step that several rounds did, the last that was not skipped counts. Needs no
GPU and nothing but Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Result = dict[str, Any]

UNPROFILED = "unprofiled"
RECORDS = "kernel records"
_LONGEST = 260
_GOAL_US = 1.0
"""Of a launch, beyond an empty client with kernel records."""
_HOW = """The modes take turns within one process for each table. Each row is compared with the unprofiled turn of the
same round: medians and ranges over rounds."""
_TABLES = ("launch cost",)
_HIDDEN = ("ok", "check", "kernel")


def read(outs: Iterable[Path]) -> list[Result]:
    """Results of all rounds in the order of their steps. A line that was cut off by an end is passed over."""
    found: dict[tuple[str, str], Result] = {}
    for number, out in enumerate(outs, 1):
        path = out / "results.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                result = json.loads(line)
                key = (result["stage"], result["step"])
            except (ValueError, KeyError, TypeError):
                continue
            if result["status"] != "skipped" or key not in found:
                found[key] = {"round": number, **result}
    return list(found.values())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "/").replace("\n", " ") for cell in row] for row in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def steps_page(results: Sequence[Result]) -> str:
    """Every step with its end and its figures."""
    machine: Result = next((result["facts"] for result in results if result["stage"] == "machine"), {})
    versions = ", ".join(f"{key} {value}" for key, value in machine.items() if key != "gpu")
    lines = [f"# {machine.get('gpu', 'unknown device')}", "", versions, ""]
    rows = []
    for result in results:
        if result["stage"] == "machine":
            continue
        facts = result.get("facts", {})
        short = "see the tables of launches" if facts.get("table") in _TABLES else text(facts)
        seconds = str(result.get("seconds", ""))
        rows.append([result["stage"], result["step"], str(result["round"]), word(result), seconds, short])
    lines += [table(["stage", "step", "round", "result", "seconds", ""], rows), ""]
    pairs = [pair for result in results for pair in result.get("facts", {}).get("pairs", ())]
    if pairs:
        lines += [
            "Predicted before it was measured:",
            "",
            table(["change", "predicted", "measured", "error"], map(pair_row, pairs)),
            "",
        ]
    return "\n".join(lines)


def pair_row(pair: Result) -> list[str]:
    """Of `leadline whatif`: how many times faster."""
    before, predicted, after = pair["before_s"], pair["predicted_s"], pair.get("after_s")
    measured = f"{before / after:.2f}x" if after else "not measured"
    return [pair["pair"], f"{before / predicted:.2f}x", measured, f"{pair['error']:+.1%}" if "error" in pair else ""]


def word(result: Result) -> str:
    """As the page says it; a step that ended well may yet say that something is not ok."""
    status = str(result["status"])
    if status in ("failed", "crashed", "overran"):
        return f"**{status}**" + (f" ({result['why']})" if result.get("why") else "")
    return status if status != "skipped" else f"not done: {result.get('why', '')}"


def text(facts: Result) -> str:
    said = json.dumps({key: value for key, value in facts.items() if key not in _HIDDEN}, default=str)
    return said if len(said) <= _LONGEST else said[:_LONGEST] + " ..."


def launches(tables: Sequence[Result], workload: str) -> float | None:
    """Kernels of a step, by the records that an empty client got."""
    for found in tables:
        facts = found["facts"].get(RECORDS, {})
        if found["workload"] == workload and facts.get("records"):
            return float(facts["records"] / facts["steps"])
    return None


def cost_rows(found: Result, per_step: float | None) -> list[list[str]]:
    """One row for each mode: medians over rounds of what the mode adds to the unprofiled turn of the same round."""
    rows = []
    base = found["seconds"].get(UNPROFILED, [])
    for mode in sorted(found["seconds"], key=found["modes"].index):
        seconds = found["seconds"][mode]
        pairs = list(zip(seconds, base, strict=False))
        added = [(value - plain) * 1e6 for value, plain in pairs]
        ratio = statistics.median(value / plain for value, plain in pairs) if pairs else float("nan")
        spread = f"{min(added):,.0f} to {max(added):,.0f}" if added else ""
        a_launch = f"{statistics.median(added) / per_step:.2f}" if added and per_step else ""
        rows.append([mode, str(len(seconds)), f"{statistics.median(seconds) * 1e3:.3f}", f"{ratio:.3f}",
                     f"{statistics.median(added):,.0f}" if added else "", spread, a_launch,
                     f"{found['enter_leave_s'].get(mode, 0):.2f}"])  # fmt: skip
    rows += [[mode, "", error, "", "", "", "", ""] for mode, error in found["errors"].items()]
    return rows


def goals(tables: Sequence[Result], workload: str, per_step: float | None) -> list[str]:
    """What Leadline adds beyond an empty client, and beside Proton and torch.profiler, a launch."""
    medians: dict[str, float] = {}
    for found in tables:
        if found["workload"] == workload and (base := found["seconds"].get(UNPROFILED)):
            for mode, seconds in found["seconds"].items():
                added = [value - plain for value, plain in zip(seconds, base, strict=False)]
                medians[mode] = statistics.median(added) * 1e6 / (per_step or 1) if added else 0.0
    lines = []
    if "Leadline" in medians and RECORDS in medians:
        beyond = medians["Leadline"] - medians[RECORDS]
        lines.append(f"Leadline adds {beyond:.2f} µs a launch beyond an empty client with kernel records "
                     f"(goal: at most {_GOAL_US}).")  # fmt: skip
    for other in ("Proton", "torch.profiler"):
        if "Leadline" in medians and other in medians:
            ours, theirs = medians["Leadline"], medians[other]
            lines.append(f"A launch costs {ours:.2f} µs under Leadline, {theirs:.2f} under {other}.")
    return lines


def cost_page(results: Sequence[Result]) -> str:
    """A table for each workload and group of modes."""
    tables = [result["facts"] for result in results if result.get("facts", {}).get("table") == "launch cost"]
    lines = ["# Whose time a launch costs", "", _HOW]
    for workload in dict.fromkeys(found["workload"] for found in tables):
        per_step = launches(tables, workload)
        counted = f"{per_step:,.0f} kernels a step." if per_step else "Kernels were not counted."
        lines += ["", f"## {workload}", "", counted]
        for found in (found for found in tables if found["workload"] == workload):
            head = ["mode", "rounds", "step, ms", "ratio", "added, µs", "range", "µs a launch", "enter and leave, s"]
            lines += ["", f"{found['steps']} steps a turn.", "", table(head, cost_rows(found, per_step))]
        lines += ["", *goals(tables, workload, per_step)]
    return "\n".join(lines) + "\n" if tables else ""


def pages(*outs: Path) -> dict[str, str]:
    """By file name without its end."""
    results = read(outs)
    return {"gpu_round": steps_page(results), "gpu_launch_cost": cost_page(results)}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The results of bench/gpu/round.sh as Markdown.")
    parser.add_argument("outs", nargs="+", type=Path, metavar="OUT")
    parser.add_argument("--results", type=Path, help="a folder to write the pages and their data to")
    parser.add_argument("--date", default="", help="when the rounds were run, for the pages that are written")
    arguments = parser.parse_args(argv)
    made = pages(*arguments.outs)
    print("\n".join(made.values()))
    if arguments.results is None:
        return 0
    from gpu_merge import without_places

    for name, page in made.items():
        if page:
            dated = f"{page.rstrip()}\n\nRounds of {arguments.date}, by `bench/gpu/round.sh`.\n"
            (arguments.results / f"{name}.md").write_text(without_places(dated), encoding="utf-8")
    data = without_places(json.dumps(read(arguments.outs), indent=1)) + "\n"
    (arguments.results / "gpu_round.json").write_text(data, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
