"""What starting and ending cost: processes under `leadline run`, the subcommands that read, an empty session.

    python bench/startup.py [--commit COMMIT] [--rounds 15] [--before PYTHON] [--results FOLDER]

Two environments are compared, both byte-compiled as an installed package is: the Python files of COMMIT, and
those of this checkout; both with the compiled modules of this installation, unless --before names the interpreter of an
environment with another Leadline. Each round runs every row on both sides in random order. CPU time (user and system)
of the command with all that it starts and waits for; where a program is measured, what that is beyond the same program
alone in the same round. Wall time is not shown: CPU time can be compared on a machine that does other things too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results

ROOT = Path(__file__).resolve().parent.parent
FIRST = "fbb5eea1"
"""The last commit before starting and ending were looked at."""
SIDES = ("before", "now")

_STEP = """
import torch
model = torch.nn.Linear(8, 8)
model(torch.ones(4, 8)).sum().backward()
"""
_SESSION = """
import json, resource, sys, time
def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
import pathlib, json, threading, contextlib
before = peak_kb()
import leadline
session = leadline.profile(sys.argv[1], quiet=True)
began = time.process_time()
session.__enter__()
started = time.process_time()
session.__exit__(None, None, None)
print(json.dumps({"start_ms": 1e3 * (started - began), "stop_ms": 1e3 * (time.process_time() - started),
                  "peak_mb": (peak_kb() - before) / 1e3}))
"""
_DEMO = ("-m", "leadline.demo.train", "--steps", "8")
_ENTRY = "import sys\nfrom leadline.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
_IMPORT = """
import importlib, time
began = time.perf_counter()
import leadline
print((time.perf_counter() - began) * 1e3)
"""


@dataclass(frozen=True)
class Row:
    """A command; `beside`: the same program without Leadline, whose CPU time is taken off."""

    name: str
    words: tuple[str, ...]
    beside: str = ""
    must_ms: float = 0.0


def rows(folder: Path, demo: Path) -> list[Row]:
    step = str(folder / "step.py")
    run = ("leadline", "run", "-o", "x.leadline")
    return [
        Row("python -c pass", ("python", "-c", "pass")),
        Row("python step.py", ("python", step)),
        Row("leadline run -q -- true", (*run, "-q", "--", "true")),
        Row("leadline run -q -c pass", (*run, "-q", "-c", "pass"), "python -c pass", 50),
        Row("leadline run -c pass", (*run, "-c", "pass"), "python -c pass"),
        Row("leadline run -q step.py", (*run, "-q", step), "python step.py", 150),
        Row("leadline run step.py", (*run, step), "python step.py"),
        Row("leadline report", ("leadline", "report", str(demo)), "", 400),
        Row("leadline analyze", ("leadline", "analyze", str(demo)), "", 400),
        Row("leadline why", ("leadline", "why", str(demo)), "", 400),
    ]


def environment(folder: Path, package: Path, hook: Path) -> Path:
    """An environment whose `leadline` is `package`, else what this interpreter has; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    shutil.copytree(package, packages / "leadline", ignore=shutil.ignore_patterns("__pycache__"))
    native = importlib.util.find_spec("leadline._native")
    if native is None or native.origin is None:
        raise SystemExit("leadline._native is not built; run `make build`.")
    for module in Path(native.origin).parent.glob("*.so*"):
        shutil.copy2(module, packages / "leadline")
    shutil.copy2(hook, packages / "leadline.pth")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    subprocess.run([python, "-m", "compileall", "-q", str(packages / "leadline")], check=True)
    script = folder / "bin" / "leadline"
    script.write_text(f"#!{python}\n{_ENTRY}", encoding="utf-8")
    script.chmod(0o755)
    return python


def of_commit(folder: Path, commit: str) -> Path:
    """An environment with the Python files of a commit."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = ["git", "archive", commit, "python/leadline", "leadline.pth"]
    text = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=text, check=True)
    return environment(folder / "before", source / "python" / "leadline", source / "leadline.pth")


def cpu_ms(python: Path, words: Sequence[str], folder: Path) -> float:
    """CPU time of a command of one side, with all processes that it has waited for."""
    command = [str(python.parent / words[0]) if words[0] in ("leadline", "python") else words[0], *words[1:]]
    pid = os.posix_spawnp(
        command[0],
        command,
        _clean(python),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "out.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    _, status, used = os.wait4(pid, 0)
    if status:
        said = (folder / "out.txt").read_text(errors="replace")[-500:]
        raise RuntimeError(f"{' '.join(command)} ended with {status}: {said}")
    return 1e3 * (used.ru_utime + used.ru_stime)


def _clean(python: Path) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**found, "PATH": f"{python.parent}:{found.get('PATH', '')}"}


def session(python: Path, folder: Path) -> dict[str, float]:
    """CPU time of starting and stopping an empty session, and how much it raises the peak of memory."""
    command = [str(python), "-c", _SESSION, str(folder / "y.leadline")]
    done = subprocess.run(command, env=_clean(python), capture_output=True, text=True, check=True, cwd=folder)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def import_ms(python: Path, folder: Path) -> float:
    done = subprocess.run(
        [str(python), "-c", _IMPORT], env=_clean(python), capture_output=True, text=True, check=True, cwd=folder
    )
    return float(done.stdout)


def one_round(pythons: Mapping[str, Path], number: int, folder: Path, demo: Path) -> dict[str, dict[str, float]]:
    """Milliseconds (or what the row says) by row and side."""
    turns = random.Random(number)
    found: dict[str, dict[str, float]] = {}
    listed = rows(folder, demo)
    for row in turns.sample(listed, len(listed)):
        found[row.name] = {side: cpu_ms(pythons[side], row.words, folder) for side in turns.sample(SIDES, 2)}
    for side in turns.sample(SIDES, 2):
        for name, value in session(pythons[side], folder).items():
            found.setdefault(name, {})[side] = value
        found.setdefault("import_ms", {})[side] = import_ms(pythons[side], folder)
    for row in listed:
        if row.beside:
            for side in SIDES:
                found[row.name][side] -= found[row.beside][side]
    return found


_SESSION_ROWS = (
    ("start_ms", "start of an empty session", 0.0),
    ("stop_ms", "stop of an empty session, with its file", 10.0),
    ("peak_mb", "peak memory of an empty session, MB", 3.0),
    ("import_ms", "`import leadline` without LEADLINE", 1.0),
)


def table(rounds: Sequence[Mapping[str, Mapping[str, float]]], listed: Sequence[Row]) -> str:
    lines = []

    def line(key: str, name: str, must: float) -> None:
        sides = [Spread.of(one[key][side] for one in rounds).text(1) for side in SIDES]
        lines.append([name, *sides, f"{must:g}" if must else ""])

    for row in listed:
        line(row.name, f"`{row.name}`" + (", beyond the program" if row.beside else ""), row.must_ms)
    for key, name, must in _SESSION_ROWS:
        line(key, name, must)
    return markdown_table(["CPU time, ms", "before", "now", "must"], lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default=FIRST, help="the older commit (default: %(default)s)")
    parser.add_argument("--before", type=Path, help="the interpreter of an environment with the older Leadline")
    parser.add_argument("--rounds", type=int, default=15)
    add_results_option(parser)
    arguments = parser.parse_args(argv)
    facts = machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "step.py").write_text(_STEP, encoding="utf-8")
        before = arguments.before or of_commit(folder / "older", arguments.commit)
        pythons = {
            "before": before,
            "now": environment(folder / "now", ROOT / "python" / "leadline", ROOT / "leadline.pth"),
        }
        demo = folder / "demo.leadline"
        command = [str(before.parent / "leadline"), "run", "-q", "-o", str(demo), *_DEMO]
        subprocess.run(command, env=_clean(before), check=True, capture_output=True, cwd=folder)
        os.chdir(folder)
        one_round(pythons, 0, folder, demo)  # files into memory
        rounds = [one_round(pythons, number + 1, folder, demo) for number in range(arguments.rounds)]
        listed = rows(folder, demo)
    text = (
        f"Median of {arguments.rounds} (range); both sides in turns. Before: the Python files of "
        f"{arguments.before or arguments.commit}. Load at the end: {os.getloadavg()[0]:.1f}.\n\n{table(rounds, listed)}"
    ).replace(str(folder) + "/", "")
    asked = f"--rounds {arguments.rounds}"
    write_results(arguments.results, "startup", facts, {"rounds": rounds}, text, arguments=asked)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
