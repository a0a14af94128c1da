"""Runs the parts of check.sh within its time: one check after another, each ended when its own time is up.

    python -m gpu_suite OUT WORK SECONDS PART...

What is known so far is in OUT after every check: summary.md and results.json, whatever happens next. Nothing else is
written there; logs, profiles and recordings stay in WORK until `pack` puts them into a few files.
Exit status: 0 when everything that could be checked passed, 1 when something did not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_checks import CHECKS
from gpu_summary import machine, summary

PARTS = ("correctness", "cost", "whatif", "tools")
LARGEST_FILE = 15 << 20
"""Bytes of one packed file: some ways of fetching results take 16 MiB at most."""
_LEAST_S = 8
_COST_SHARE = 0.55
"""Part of the time that the cost table may take when correctness is checked as well."""
_ENDING_S = 10
_LAST_PAIR_S = 90
"""A pair that compiles may take this long after the moment when no further one begins."""


@dataclass
class Suite:
    """What is left of the time, and what is known."""

    out: Path
    work: Path
    deadline: float
    results: dict[str, Any] = field(
        default_factory=lambda: {"machine": {}, "correctness": {}, "cost": {}, "whatif": {}, "tools": {}}
    )

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def correctness(self, until: float) -> None:
        """Every check in a process group of its own."""
        for name, (_, limit_s) in CHECKS.items():
            allowed = min(limit_s, until - time.monotonic())
            if allowed < _LEAST_S:
                self.results["correctness"][name] = {"ok": None, "why": "There was no time left.", "seconds": 0}
            else:
                ended = self.step(name, allowed, ["-m", "gpu_checks", name, str(self.work)])
                self.results["correctness"][name] = self.found(name, ended, allowed)
            self.write()

    def found(self, name: str, ended: bool, allowed: float) -> dict[str, Any]:
        """What the check left; one that was ended or died is a failure with its reason."""
        path = self.work / f"{name}.json"
        if path.exists():
            result: dict[str, Any] = json.loads(path.read_text())
            return result
        why = "died without a result" if ended else f"did not end within {allowed:.0f} s"
        return {"ok": False, "error": why, "seconds": round(allowed, 1)}

    def cost(self) -> None:
        """The table writes its own file after every round."""
        seconds = self.left() - _ENDING_S
        path = self.work / "cost.json"
        if seconds > _LEAST_S:
            self.step("cost", self.left(), ["-m", "gpu_cost", str(path), str(seconds - 5)])
        self.results["cost"] = json.loads(path.read_text()) if path.exists() else {}
        self.write()

    def whatif(self, root: Path) -> None:
        """Predictions against the truth; the script writes when its last pair has ended."""
        seconds = self.left() - _LAST_PAIR_S
        script = str(root / "bench" / "gpu" / "whatif_pairs.py")
        folder = self.work / "whatif"
        self.step("whatif", self.left(), [script, "--results", str(folder), "--seconds", str(seconds)])
        path = folder / "whatif_gpu_pairs.json"
        self.results["whatif"] = json.loads(path.read_text()) if path.exists() else {}
        self.write()

    def tools(self) -> None:
        """Event tools on the device; it writes its own page into OUT as well."""
        seconds = self.left() - _ENDING_S
        if seconds > _LEAST_S:
            self.step("tools", self.left(), ["-m", "gpu_tools", str(self.out), str(self.work), str(seconds)])
        path = self.out / "tools.json"
        self.results["tools"] = json.loads(path.read_text()) if path.exists() else {}
        self.write()

    def step(self, name: str, seconds: float, arguments: Sequence[str]) -> bool:
        """Run it with its own log; False when its time was up, and then all its processes are gone."""
        with (self.work / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.work,
                start_new_session=True,
            )
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                end_group(process)
                print(f"{name}: ended after {seconds:.0f} s", flush=True)
                return False
        print(f"{name}: status {process.returncode}, {self.left():.0f} s left", flush=True)
        return True

    def write(self) -> None:
        """summary.md and results.json, each replaced at once."""
        for name, text in (
            ("results.json", json.dumps(self.results, indent=1, default=str)),
            ("summary.md", summary(self.results)),
        ):
            partial = self.work / f"{name}.partial"
            partial.write_text(text)
            partial.replace(self.out / name) if same_device(partial, self.out) else (self.out / name).write_text(text)

    def passed(self) -> bool:
        checks = [*self.results["correctness"].values(), *self.results["cost"].get("verdicts", {}).values()]
        checks += self.results.get("tools", {}).values()
        return all(check.get("ok") is not False for check in checks)


def same_device(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask, then force: a program that hangs in the driver may not answer the first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=3)
            if number == signal.SIGTERM:
                continue  # its children may still be there
        except subprocess.TimeoutExpired:
            continue


def pack(out: Path, work: Path) -> None:
    """Recordings, profiles and logs as one archive each; what would make an archive too large is left out and named."""
    groups = {
        "recordings.tar.gz": sorted((work / "recordings").glob("*")) if (work / "recordings").exists() else [],
        "profiles.tar.gz": sorted(work.glob("*.leadline"), key=lambda path: path.stat().st_size),
        "logs.tar.gz": [*sorted(work.glob("*.log")), *sorted(work.glob("whatif/*"))],
    }
    for name, paths in groups.items():
        room, left_out = LARGEST_FILE, []
        with tarfile.open(out / name, "w:gz") as archive:
            for path in paths:
                if path.is_file() and path.stat().st_size < room:
                    archive.add(path, arcname=path.name)
                    room -= path.stat().st_size
                elif path.is_file():
                    left_out.append(path.name)
        if left_out:
            print(f"{name}: left out for size: {', '.join(left_out)}")


def main() -> int:
    out, work, seconds, *parts = sys.argv[1:]
    suite = Suite(Path(out), Path(work), time.monotonic() + float(seconds))
    suite.results["machine"] = machine()
    suite.write()
    try:
        if "correctness" in parts:
            share = _COST_SHARE if "cost" in parts else 0.0
            suite.correctness(time.monotonic() + suite.left() * (1 - share))
        if "cost" in parts:
            suite.cost()
        if "whatif" in parts:
            suite.whatif(Path(__file__).resolve().parents[2])
        if "tools" in parts:
            suite.tools()
    finally:
        suite.write()
        pack(suite.out, suite.work)
    return 0 if suite.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
