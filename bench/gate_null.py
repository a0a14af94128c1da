"""How often `leadline gate` fails a program that has not changed, and passes one that does more.

Runs of one program are compared with each other, one run against one and four against four, and with runs that do 10
and 30 % more work a step. Everything is recorded in turn (a run of each, again and again), so that a machine that
changes over time changes for all.

    python bench/gate_null.py [--runs 16] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from leadline.compare import Limits, compare, judge
from leadline.compare.gate import FAILED, PASSED, UNCLEAR
from leadline.profiles import Profile, open_profile

PROGRAMS = {
    "small operators (MLP, Adam)": """
import sys, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(10)))
optimizer = torch.optim.Adam(model.parameters())
more = int(sys.argv[1])
x = torch.ones(32, 64)
for step in range(200):
    model(x).sum().backward()
    optimizer.step(); optimizer.zero_grad()
    for _ in range(more): model[0](x)
""",
    "large operators (matrix products)": """
import sys, torch
torch.set_num_threads(1)
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
more = int(sys.argv[1])
x = torch.ones(256, 512)
for step in range(100):
    for _ in range(10): model(x).sum().backward()
    optimizer.step(); optimizer.zero_grad()
    for _ in range(more): model(x)
""",
}
MORE = {"small operators (MLP, Adam)": (0, 9, 27), "large operators (matrix products)": (0, 3, 9)}
"""Repeated calls that make a step about 10 and 30 % longer; how much longer it is, is measured."""
GROUPS = 200


def record(folder: Path, runs: int) -> None:
    for name, text in PROGRAMS.items():
        program = folder / f"{slug(name)}.py"
        program.write_text(text, encoding="utf-8")
        for run, more in itertools.product(range(runs), MORE[name]):
            file = folder / f"{slug(name)}-{more}-{run}.leadline"
            if file.exists():
                continue
            command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(file), str(program), str(more)]
            subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=300)


def slug(name: str) -> str:
    return name.split()[0]


def opened(folder: Path, name: str, more: int) -> list[Profile]:
    return [open_profile(path) for path in sorted(folder.glob(f"{slug(name)}-{more}-*.leadline"))]


def verdicts(pairs: Iterable[tuple[Sequence[Profile], Sequence[Profile]]]) -> tuple[Counter[int], list[float]]:
    found: Counter[int] = Counter()
    ratios = []
    for a, b in pairs:
        diff = compare(a, b)
        found[judge(diff, Limits(allowed=("arguments",))).code] += 1
        ratios.append(diff.step.ratio)
    return found, sorted(ratios)


def row(what: str, sides: str, found: Counter[int], ratios: list[float]) -> str:
    total = found.total()
    share = [f"{found[code]} ({100 * found[code] / total:.0f} %)" for code in (FAILED, UNCLEAR, PASSED)]
    spread = f"{ratios[len(ratios) // 2]:.3f} ({ratios[len(ratios) // 20]:.3f} to {ratios[-1 - len(ratios) // 20]:.3f})"
    return f"| {what} | {sides} | {total} | {' | '.join(share)} | {spread} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--keep", type=Path, help="record here, and use what is here already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.keep or Path(made)
        folder.mkdir(exist_ok=True)
        record(folder, arguments.runs)
        draw = random.Random(0)
        print("| program, B does | runs a side | comparisons | failed | no verdict | passed | B over A (90 %) |")
        print("|---|---|---|---|---|---|---|")
        for name in PROGRAMS:
            base, longer, longest = (opened(folder, name, more) for more in MORE[name])
            same = list(itertools.permutations(base, 2))
            same = draw.sample(same, min(GROUPS, len(same)))
            print(
                row(
                    f"{name}: the same",
                    "1",
                    *verdicts(([a], [b]) for a, b in same),
                )
            )
            splits = [draw.sample(base, 8) for _ in range(GROUPS)]
            print(row(f"{name}: the same", "4", *verdicts((one[:4], one[4:]) for one in splits)))
            for what, others in (("about 10 % more", longer), ("about 30 % more", longest)):
                pairs = list(itertools.product(base, others))
                some = draw.sample(pairs, min(GROUPS, len(pairs)))
                print(row(f"{name}: {what}", "1", *verdicts(([a], [b]) for a, b in some)))
                fours = [(draw.sample(base, 4), draw.sample(others, 4)) for _ in range(GROUPS)]
                print(row(f"{name}: {what}", "4", *verdicts(fours)))


if __name__ == "__main__":
    main()
