"""Programs drawn by seeds (program.py), and what their profiles say compared with what they did.

python -m tests.simulation.simulate --seeds 10000     as nightly does; names each seed that fails
python -m tests.simulation.simulate --seed 17          replays one, and shows its actions
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from tests import stepped_clock
from tests.nvidia import fake_gpu
from tests.simulation import program
from tests.truth.invariants import contradictions

from leadline.profiles import Profile, ProfileFileError, open_profile
from leadline.profiles.recover import write_recovered

LIMIT_S = 90
ROOT = Path(__file__).parents[2]


def is_supervised(seed: int) -> bool:
    """One of five is a program below `leadline run`."""
    return random.Random(f"{seed} supervised").random() < 0.2


def faults(seed: int, folder: Path, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """What is wrong with the profile of a seed's program, run in a process of its own in an empty folder."""
    stepped_clock.set_clock(0)
    status = _supervised(seed, folder, tell) if is_supervised(seed) else _forked(seed, folder, tell)
    stepped_clock.set_clock(0)
    said = (folder / "stderr").read_text()
    if not (folder / "told.json").exists():
        return [f"The program did not come to its end (status {status}): {said[-600:]}"]
    told = json.loads((folder / "told.json").read_text())
    by = {"killed": signal.SIGKILL, "orphaned": signal.SIGKILL, "terminated": signal.SIGTERM}.get(told["end"])
    wrong = [] if status == (-by if by else 0) else [f"status {status}: {said}"]
    foreign = [line for line in said.splitlines() if not line.startswith("leadline: ")]
    return wrong + told["wrong"] + [f"on its stderr: {line}" for line in foreign] + _of_profile(told, folder)


def _forked(seed: int, folder: Path, tell: Callable[[str], None]) -> int:
    if not (pid := os.fork()):
        status = 1
        try:
            sys.stderr.flush()
            os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT, 0o600), 2)
            signal.alarm(LIMIT_S)
            program.main(seed, folder, tell)
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _supervised(seed: int, folder: Path, tell: Callable[[str], None]) -> int:
    run = [sys.executable, "-m", "leadline", "run", "-q", "-o", "out.leadline"]
    run += [
        "--flush-interval",
        str(program.interval_of(seed)),
        "--no-memory",
        "-m",
        "tests.simulation.program",
        str(seed),
    ]
    with (folder / "stderr").open("wb") as stderr:
        started = subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, stderr=stderr, text=True,
                                   env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True)  # fmt: skip
        try:  # until the program has ended, if its supervisor is killed
            said = started.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            said = started.communicate()[0]
    for action in said.splitlines():
        tell(action)
    return started.returncode


def _of_profile(told: dict[str, object], folder: Path) -> list[str]:
    output = folder / "out.leadline"
    part = folder / "out.leadline.part"
    try:
        if not output.exists():
            write_recovered(part, output)
        profile = open_profile(output)
    except (ProfileFileError, OSError) as error:
        return [] if told["full"] else [f"There is no profile: {error}"]
    # A region that is open at the end holds what ran in it, and its call was not counted.
    still_open = tuple(f"calls_are_their_own_time_and_their_parts: region {name} " for name in told["open"])  # type: ignore[attr-defined]
    found = [one for one in contradictions(profile) if not one.startswith(still_open)]
    day_ns = 86_400_000_000_000
    found += [f"A process ends {one.start_ns - one.end_ns} ns before it begins" for one in profile.processes
              if one.end_ns < one.start_ns]  # fmt: skip
    if not 0 <= profile.meta["wall_ns"] < 3 * day_ns:
        found.append(f"It took {profile.meta['wall_ns']} ns")
    return found + _counts(told, profile)


def _counts(told: dict[str, object], profile: Profile) -> list[str]:
    tree = profile.tree
    calls, kernels = tree.exclusive("call_time").count, tree.exclusive("gpu_time").sum
    found: dict[str, int] = {}
    for node in tree.walk():
        if node.kind in ("region", "kernel"):
            found[node.name] = found.get(node.name, 0) + int((calls if node.kind == "region" else kernels)[node.row])
    whole = told["end"] in ("stop", "open", "orphaned") and not told["full"]
    lossy = any(loss.kind.name.lower().startswith("region") for loss in profile.losses)
    wrong = []
    for what in ("ended", "booked", "launched"):
        for name, times in told[what].items():  # type: ignore[attr-defined]
            seen, least = found.get(name, 0), told["sure"].get(name, 0) if what == "ended" else 0  # type: ignore[attr-defined]
            if told["full"] or lossy:
                least = 0
            exact = whole and not lossy and not (name.startswith("o") and told["end"] == "open")
            if seen != times if exact else not least <= seen <= times + name.startswith("o") * 100:
                wrong.append(f"{name}: {seen} in the profile, {times} were made, {least} of them flushed")
    return wrong


def in_folder(seed: int, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """As `faults`, in a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-simulation-"))
    try:
        return faults(seed, folder, tell)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def surroundings(folder: Path) -> dict[str, str]:
    """The variables of a simulation: a clock that can be set, and the libraries of a fake GPU."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("The fake GPU and the clock need a C and a C++ compiler.")
    fake_gpu.build(folder, compiler)
    return {"FAKES": str(folder), **stepped_clock.make(folder)}


def main() -> int:
    if "SET_BY" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="leadline-simulation-") as folder:
            environment = {**os.environ, **surroundings(Path(folder))}
            again = [sys.executable, "-m", "tests.simulation.simulate", *sys.argv[1:]]
            return subprocess.run(again, env=environment, check=False).returncode
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay one")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        wrong = in_folder(arguments.seed, lambda action: print(action, flush=True))
        print("\n".join(wrong) or "right")
        return bool(wrong)
    failed = {}
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        if wrong := in_folder(seed):
            failed[seed] = wrong
            print(f"seed {seed}: " + "; ".join(wrong)[:400], flush=True)
    print(f"{arguments.seeds - len(failed)} of {arguments.seeds} seeds are right")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
