"""How often `leadline gate` is wrong, about programs that have not changed and that do more, and what follows.

Runs of one program are compared with each other, one run against one and four against four, and with runs that do 10
and 30 % more work a step. Everything is recorded in turn (a run of each, again and again), so that a machine that
changes over time changes for all. Give it a machine that does nothing else:

    python bench/gate_null.py [--seconds 150] [--keep FOLDER] [--apply] [--results FOLDER]

The decision: of the constants in `leadline/compare/limits.py` those that fail at most 1 in 50 unchanged programs of
either kind and, of these, find most of the runs that do 10 % more; where several do, those nearest to the present
ones. `--apply` writes them there. Exit code 3 where the machine was busy, which decides nothing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import add_results_option, machine, markdown_table, write_results
from leadline.compare import Limits, compare, judge, limits
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
GROUPS = 100
FEWEST_RUNS = 8
FALSE_ALARMS = 0.02
BUSY = 0.1
"""Share of comparisons that ask for a machine that is not busy, beyond which nothing is decided."""
BETWEEN_RUNS = (1.02, 1.03, 1.05, 1.08, 1.1, 1.15)
ERRORS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)


def record(folder: Path, seconds: float) -> None:
    """Rounds of a run of each until the time is over; at least FEWEST_RUNS."""
    began = time.monotonic()
    for name, text in PROGRAMS.items():
        (folder / f"{slug(name)}.py").write_text(text, encoding="utf-8")
    for run in itertools.count():
        if run >= FEWEST_RUNS and time.monotonic() - began > seconds:
            return
        for name in PROGRAMS:
            for more in MORE[name]:
                file = folder / f"{slug(name)}-{more}-{run:03d}.leadline"
                if file.exists():
                    continue
                program = folder / f"{slug(name)}.py"
                command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(file), str(program), str(more)]
                subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=300)


def slug(name: str) -> str:
    return name.split()[0]


def opened(folder: Path, name: str, more: int) -> list[Profile]:
    return [open_profile(path) for path in sorted(folder.glob(f"{slug(name)}-{more}-*.leadline"))]


@dataclass(frozen=True)
class Compared:
    """`noise`: relative standard error of the ratio, from the steps inside the runs."""

    code: int
    ratio: float
    noise: float
    busy: bool

    def fails(self, between_runs: float, errors: float) -> bool:
        """As `leadline gate` judges one run against one, with other constants."""
        return self.ratio > max(1 + limits.SLOWDOWN, between_runs * math.exp(errors * self.noise)) and not self.busy


def compared(pairs: Iterable[tuple[Sequence[Profile], Sequence[Profile]]]) -> list[Compared]:
    found = []
    for a, b in pairs:
        diff = compare(a, b)
        code = judge(diff, Limits(allowed=("arguments",))).code
        noise = math.log(max(diff.sure / limits.BETWEEN_RUNS, 1)) / limits.ERRORS
        found.append(Compared(code, diff.step.ratio, noise, bool(diff.doubt)))
    return found


def row(what: str, sides: str, found: Sequence[Compared]) -> list[str]:
    codes, ratios = Counter(one.code for one in found), sorted(one.ratio for one in found)
    share = [f"{codes[code]} ({100 * codes[code] / len(found):.0f} %)" for code in (FAILED, UNCLEAR, PASSED)]
    low, middle, high = (ratios[int(at * (len(ratios) - 1))] for at in (0.05, 0.5, 0.95))
    return [what, sides, str(len(found)), *share, f"{middle:.3f} ({low:.3f} to {high:.3f})"]


def decide(same: Sequence[Sequence[Compared]], longer: Sequence[Sequence[Compared]]) -> tuple[float, float] | None:
    """Of each program the comparisons of equal runs and of those with runs that do 10 % more. None: no constants that
    were tried keep to `FALSE_ALARMS`."""

    def share(found: Sequence[Compared], pair: tuple[float, float]) -> float:
        return sum(one.fails(*pair) for one in found) / max(len(found), 1)

    allowed = [
        pair
        for pair in itertools.product(BETWEEN_RUNS, ERRORS)
        if all(share(found, pair) <= FALSE_ALARMS for found in same)
    ]
    if not allowed:
        return None
    now = (limits.BETWEEN_RUNS, limits.ERRORS)

    def worth(pair: tuple[float, float]) -> tuple[float, float]:
        away = abs(math.log(pair[0] / now[0])) + abs(math.log(pair[1] / now[1]))
        return round(min((share(found, pair) for found in longer), default=0.0), 2), -away

    return max(allowed, key=worth)


def apply(pair: tuple[float, float]) -> None:
    """Writes the constants where the product reads them."""
    place = Path(limits.__file__)
    text = place.read_text(encoding="utf-8")
    for name, value in zip(("BETWEEN_RUNS", "ERRORS"), pair, strict=True):
        text, changed = re.subn(rf"^{name} = .*$", f"{name} = {value:g}", text, flags=re.MULTILINE)
        assert changed == 1, name
    place.write_text(text.replace("ERRORS = 3\n", "ERRORS = 3.0\n"), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=150, help="for recording; comparing takes half a minute more")
    parser.add_argument("--keep", type=Path, help="record here, and use what is here already")
    parser.add_argument("--apply", action="store_true", help="write the constants that follow into compare/limits.py")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    rows, same, longer = [], [], []
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.keep or Path(made)
        folder.mkdir(exist_ok=True)
        record(folder.resolve(), arguments.seconds)
        draw = random.Random(0)
        for name in PROGRAMS:
            base, ten, thirty = (opened(folder, name, more) for more in MORE[name])
            pairs = list(itertools.permutations(base, 2))
            ones = compared(([a], [b]) for a, b in draw.sample(pairs, min(GROUPS, len(pairs))))
            same.append(ones)
            rows.append(row(f"{name}: the same", "1", ones))
            splits = [draw.sample(base, 8) for _ in range(GROUPS // 4)]
            rows.append(row(f"{name}: the same", "4", compared((one[:4], one[4:]) for one in splits)))
            for what, others in (("about 10 % more", ten), ("about 30 % more", thirty)):
                pairs = list(itertools.product(base, others))
                ones = compared(([a], [b]) for a, b in draw.sample(pairs, min(GROUPS, len(pairs))))
                if others is ten:
                    longer.append(ones)
                rows.append(row(f"{name}: {what}", "1", ones))
                fours = [(draw.sample(base, 4), draw.sample(others, 4)) for _ in range(GROUPS // 4)]
                rows.append(row(f"{name}: {what}", "4", compared(fours)))
    busy = sum(one.busy for found in same for one in found) / sum(map(len, same))
    pair = None if busy > BUSY else decide(same, longer)
    if busy > BUSY:
        said = f"No decision: {100 * busy:.0f} % of the comparisons say that the machine was busy."
    elif pair is None:
        said = f"No constants that were tried fail at most {100 * FALSE_ALARMS:.0f} % of unchanged programs."
    else:
        said = f"Decision: BETWEEN_RUNS = {pair[0]:g}, ERRORS = {pair[1]:g}"
        said += f" (now {limits.BETWEEN_RUNS:g} and {limits.ERRORS:g})."
    head = ["program, B does", "runs a side", "comparisons", "failed", "no verdict", "passed", "B over A (90 %)"]
    text = f"{markdown_table(head, rows)}\n\n{said}\n"
    write_results(arguments.results, "gate_null", facts, {"rows": rows, "decision": pair}, text)
    if pair is not None and arguments.apply:
        apply(pair)
    return 3 if pair is None else 0


if __name__ == "__main__":
    sys.exit(main())
