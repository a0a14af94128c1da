"""The project's own ledger: what is predicted of a remedy beside what it does, over programs of many fields.

    python bench/ledger.py --list
    python bench/ledger.py --results /tmp/results --limit 5min        # hours in all; a quiet machine
    python bench/ledger.py --only gnn --only lstm

Each pair is one `leadline try` of one remedy, in processes of its own. The programs (`ledger_programs.py`) are written
out from what their fields do: transformers, a vision transformer, a graph network, recurrent networks, a recommender, a
diffusion model, reinforcement learning, JAX. Half of the pairs, drawn by the name's hash, are held out: only their
summary is printed and written, never a row, so that nothing is tuned to them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import add_results_option, machine, markdown_table, write_results
from leadline.trials import ledger
from ledger_programs import PROGRAMS

REMEDIES = ("fused_optimizer", "autocast", "compile", "num_threads=2", "workers=1", "batch=x2")


def pairs() -> list[tuple[str, str]]:
    """(program, remedy): what can apply there."""
    return [(name, remedy) for name, one in PROGRAMS.items() for remedy in REMEDIES if remedy in one.remedies]


def is_held_out(program: str, remedy: str) -> bool:
    return zlib.crc32(f"{program} {remedy}".encode()) % 2 == 0


def measured(program: str, remedy: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The ledger's line, none where the remedy was not applied or not comparable."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / f"{program}.py").write_text(PROGRAMS[program].text, encoding="utf-8")
        words = ("try", "--limit", arguments.limit, "--steps", str(arguments.steps), "--fix", remedy)
        done = subprocess.run(
            [sys.executable, "-m", "leadline", *words, f"{program}.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        path = folder / ledger.NAME
        if not path.exists():
            said = [line for line in (done.stdout + done.stderr).splitlines() if remedy in line or "leadline:" in line]
            print(f"{program}, {remedy}: no entry: {' '.join(said[-1:])[:200]}", file=sys.stderr)
            return []
        return ledger.read(path)[0]


def summarised(entries: Sequence[dict[str, Any]]) -> list[str]:
    found = ledger.summary(entries)
    if not found.predicted:
        return [str(found.measured), "0", "-", "-", "-", "-"]
    return [
        str(found.measured),
        str(found.predicted),
        f"{found.held} of {found.predicted - found.open}",
        f"{found.half_width:.1%}",
        f"{found.error:.1%}",
        f"{found.error_95:.1%}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Predicted and measured gains of remedies, over public programs.")
    parser.add_argument("--only", action="append", default=[], help="programs; repeatable")
    parser.add_argument("--limit", default="5min", help="of each pair (default: 5min)")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--list", action="store_true", help="the pairs, with those that are held out")
    add_results_option(parser)
    arguments = parser.parse_args()
    chosen = [one for one in pairs() if not arguments.only or one[0] in arguments.only]
    if arguments.list:
        print("\n".join(f"{name}, {remedy}{', held out' * is_held_out(name, remedy)}" for name, remedy in chosen))
        return 0
    facts = machine()
    shown: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    for name, remedy in chosen:
        entries = measured(name, remedy, arguments)
        (held if is_held_out(name, remedy) else shown).extend(entries)
        print(f"{name}, {remedy}: {len(entries)} entries", file=sys.stderr, flush=True)
    head = ["pairs", "measured", "predicted", "coverage", "median half-width", "median error", "95th percentile"]
    table = markdown_table(
        head, [["shown", *summarised(shown)], ["held out", *summarised(held)], ["all", *summarised([*shown, *held])]]
    )
    rows = markdown_table(
        ["program", "remedy", "measured", "predicted"],
        [[one["program"], one["remedy"], _range(one["measured"]), _range(one["predicted"])] for one in shown],
    )
    noise = statistics.median(one["noise"] for one in [*shown, *held]) if shown or held else 0.0
    report = f"{table}\nThe baseline differs by {noise:.1%} from run to run in the median.\n\n{rows}"
    data = {"shown": shown, "held_out": {"summary": summarised(held)}}
    write_results(
        arguments.results, "ledger", facts, json.loads(json.dumps(data)), report, title="Predicted and measured"
    )
    return 0


def _range(one: dict[str, float] | None) -> str:
    return f"{one['median']:+.1%} ({one['low']:+.1%}, {one['high']:+.1%})" if one else "-"


if __name__ == "__main__":
    raise SystemExit(main())
