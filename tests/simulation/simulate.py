"""Programs drawn by seeds (program.py), and what their profiles say compared with what they did.

python -m tests.simulation.simulate --seeds 10000     as nightly does; names each seed that fails
python -m tests.simulation.simulate --seed 17          replays one, and shows its actions
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.simulation import program
from tests.truth.invariants import contradictions

from leadline.profiles import Profile, ProfileFileError, open_profile
from leadline.profiles.recover import write_recovered

LIMIT_S = 60


def faults(seed: int, folder: Path, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """What is wrong with the profile of a seed's program, run in a process of its own in an empty folder."""
    if not (pid := os.fork()):
        status = 1
        try:
            sys.stderr.flush()
            os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT, 0o600), 2)
            import signal

            signal.alarm(LIMIT_S)
            program.main(seed, folder, tell)
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    said = (folder / "stderr").read_text()
    if not (folder / "told.json").exists():
        return [f"The program did not come to its end (status {status}): {said[-600:]}"]
    told = json.loads((folder / "told.json").read_text())
    wrong = [] if (os.WIFSIGNALED(status) if told["end"] == "killed" else status == 0) else [f"status {status}: {said}"]
    foreign = [line for line in said.splitlines() if not line.startswith("leadline: ")]
    return wrong + [f"on its stderr: {line}" for line in foreign] + _of_profile(told, folder)


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
    return found + _counts(told, profile)


def _counts(told: dict[str, object], profile: Profile) -> list[str]:
    tree = profile.tree
    calls, kernels = tree.exclusive("call_time").count, tree.exclusive("gpu_time").sum
    found: dict[str, int] = {}
    for node in tree.walk():
        if node.kind in ("region", "kernel"):
            found[node.name] = found.get(node.name, 0) + int((calls if node.kind == "region" else kernels)[node.row])
    whole = told["end"] in ("stop", "open") and not told["full"]
    lossy = any(loss.kind.name.lower().startswith("region") for loss in profile.losses)
    wrong = []
    for what in ("ended", "booked"):
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


def main() -> int:
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
