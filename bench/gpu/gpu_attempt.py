"""One `leadline run` of gpu_tiny.py with what a round asks, and what the profile says beside what was launched.

    python -m gpu_attempt WHAT KERNEL SECONDS [OPTION ...]      WHAT: instructions, counters, replay

The last line printed is the verdict as JSON. The profile is kept where ROUND_KEPT names a folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gpu_modes import CARRIED
from gpu_run import FAKES_VARIABLE, last_object, rehearsing

from leadline.analysis.hardware import by_kernel
from leadline.profiles import Profile, open_profile
from leadline.report.kernel_source import kernel_heat

Facts = dict[str, Any]
TESTS = Path(__file__).resolve().parents[2] / "tests"
FAKE_KERNEL = "_Z7rmsnormPK6__halfS1_PS_i"
LEAST = {"multiplying": ("tensor", 0.1), "copying": ("dram", 0.4), "scattered": ("sectors", 20),
         "conflicts": ("conflicts", 0.3)}  # fmt: skip
"""By kernel, the counter that must be at least so high."""


def environment() -> dict[str, str]:
    """Of the program; for a rehearsal what the fake device answers."""
    found = {**os.environ, "LEADLINE_COUNTER_INTERVAL": "20"}
    if not rehearsing():
        return found | {"ROUND_CUBIN": f"{os.environ[CARRIED]}/lib/kernels.cubin"}
    return found | {
        "FAKES": os.environ[FAKES_VARIABLE],
        "ROUND_CUBIN": str(TESTS / "profiles/cubins/rmsnorm.sm_90.cubin"),
        "ROUND_KERNEL": FAKE_KERNEL,
        "SAMPLES": f"{FAKE_KERNEL},288,long_scoreboard,80 {FAKE_KERNEL},336,lg_throttle,10",
        "RATES": f"{FAKE_KERNEL},50,80,60,900",
        "MEMORY": f"{FAKE_KERNEL},4,3,1,32",
    }


def measured(kernel: str, seconds: str, options: list[str], name: str) -> tuple[Profile, Facts]:
    """The profile, and what the program said of itself. Raises RuntimeError with its last words."""
    output = Path(os.environ.get("ROUND_KEPT", "."), f"{name}.leadline")
    command = [sys.executable, "-m", "leadline", "run", "-o", str(output), *options, "-m", "gpu_tiny", kernel, seconds]
    begin = time.monotonic()
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    whole_s = time.monotonic() - begin
    if done.returncode != 0 or not output.exists():
        raise RuntimeError(f"leadline run ended with status {done.returncode}")
    return open_profile(output), {**last_object(done.stdout), "whole_s": round(whole_s, 2)}


def counted(profile: Profile) -> int:
    """Launches of kernels that the profile holds."""
    return sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel"))


def verdict(what: str, kernel: str, profile: Profile, said: Facts) -> Facts:
    """What was found, with `ok`."""
    details = profile.meta["processes"][0]["available"].get("nvidia", {}).get("details", {})
    seen = counted(profile)
    facts: Facts = {**said, "counted": seen, "all counted": seen == said.get("launches")}
    facts["losses"] = {loss.kind.name: [loss.count, loss.detail] for loss in profile.losses if loss.count}
    if what == "instructions":
        heats = kernel_heat(profile, None)
        facts["samples"] = sum(heat.samples for heat in heats)
        heat = next(iter(heats), None)
        lines = sorted(heat.lines, key=lambda line: -line.own)[:4] if heat else []
        facts["hottest"] = [f"{Path(line.file).name}:{line.line} {line.own}" for line in lines]
        facts["reasons"] = {reason.name: reason.samples for reason in heat.reasons[:5]} if heat else {}
        facts["sampling"] = details.get("instructions", {})
        return facts | {"ok": facts["samples"] > 0 and bool(lines)}
    name, least = LEAST[kernel]
    rows = by_kernel(profile.tree)
    most = max((getattr(row, name) or 0.0 for row in rows), default=0.0)
    facts |= {"counter": name, "reads": most, "at least": least, "rows": [vars(row) for row in rows[:2]]}
    facts["counting"] = details.get("counters" if what == "counters" else "replay", {})
    return facts | {"ok": most >= least}


def main() -> int:
    what, kernel, seconds, *options = sys.argv[1:]
    profile, said = measured(kernel, seconds, options, os.environ.get("ROUND_STEP", f"{what}-{kernel}"))
    facts = verdict(what, kernel, profile, said)
    print(json.dumps(facts, default=str))
    return 0 if facts["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
