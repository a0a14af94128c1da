"""`leadline try` on programs as their libraries' documentation writes them: the table of each, as a user reads it.

    python bench/try.py                          # six programs, with what a profile of each suggests
    python bench/try.py --only jax_mlp --limit 2min

The programs lie in `examples/tried`; ddp.py runs on two ranks. The load of the machine stands at each table, since
a busy machine widens the intervals.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import add_results_option, machine, write_results

PROGRAMS = Path(__file__).resolve().parents[1] / "examples" / "tried"
_COMMANDS = {"ddp": ["--", "torchrun", "--nproc-per-node", "2", "ddp.py"]}


def titles() -> dict[str, str]:
    """Program to the first line of what it says of itself."""
    return {one.stem: one.read_text(encoding="utf-8").split('"""')[1].strip() for one in sorted(PROGRAMS.glob("*.py"))}


def tried(name: str, options: list[str]) -> tuple[str, int]:
    """What the command prints, without its progress, and its exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / f"{name}.py").write_text((PROGRAMS / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, "-m", "leadline", "try", *options, *_COMMANDS.get(name, [f"{name}.py"])],
            cwd=folder,
            env={**os.environ, "PATH": search},
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stdout or done.stderr).rstrip(), done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="leadline try on programs of others.")
    parser.add_argument("--only", action="append", default=[], help="programs; repeatable")
    parser.add_argument("--limit", default="3min", help="of each program (default: %(default)s)")
    parser.add_argument("--steps", default="", help="timed in each run (default: as many as the command takes)")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    parts, data = [], {}
    for name, title in titles().items():
        if arguments.only and name not in arguments.only:
            continue
        load = os.getloadavg()[0]
        options = ["--limit", arguments.limit, *(["--steps", arguments.steps] if arguments.steps else [])]
        text, code = tried(name, [*options, "--no-ledger"])
        command = " ".join(_COMMANDS.get(name, [f"{name}.py"]))
        parts.append(
            f"## {name}\n\n{title.rstrip('.')}. Load {load:.1f} to {os.getloadavg()[0]:.1f}, exit code {code}.\n\n"
            f"```\n$ leadline try {' '.join(options)} {command}\n{text}\n```\n"
        )
        data[name] = {"text": text, "exit_code": code, "load": load}
        threads = os.environ.get("OMP_NUM_THREADS", "")
        report = "\n".join([f"OMP_NUM_THREADS={threads}.\n" if threads else "", *parts]).lstrip()
        write_results(arguments.results, "try", facts, {"programs": data}, report, title="leadline try")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
