"""Measures a small known program in a process of its own and reports what came of it, as JSON on stdout.

The checks ask for it through `run_probe`; a crash, a hang or an exception there is an answer like any other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass

_TIMEOUT_S = 300
"""Importing torch from a cold network file system takes minutes."""
_PROBE = "from leadline.cli.checks.probe import main; main()"


@dataclass(frozen=True)
class ProbeResult:
    """What the probe said, or why it could not."""

    values: dict[str, Any]
    error: str
    """One sentence; empty when all went well."""


def run_probe(framework: str = "") -> ProbeResult:
    """Measure the known program, with the `framework` imported and used when one is named."""
    from leadline.capture.config import VARIABLES

    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    with tempfile.TemporaryDirectory(prefix="leadline-doctor-") as folder:
        command = [sys.executable, "-c", _PROBE, folder, framework]
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return ProbeResult({}, f"The self-test did not end within {_TIMEOUT_S} seconds.")
    if done.returncode < 0:
        return ProbeResult({}, f"The self-test died of {signal.Signals(-done.returncode).name}.")
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    try:
        values = json.loads(lines[-1]) if lines else {}
    except ValueError:
        values = {}
    if done.returncode != 0 or not isinstance(values, dict) or not values:
        reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
        return ProbeResult({}, f"The self-test failed: {reason}")
    return ProbeResult(values, "")


def main() -> None:
    """Entry of the probe's process: arguments are a folder to write to and a framework or an empty string."""
    folder, framework = sys.argv[1], sys.argv[2]
    print(json.dumps(probe(Path(folder), framework)))


def probe(folder: Path, framework: str) -> dict[str, Any]:
    """Measure the known program in this process."""
    import leadline
    from leadline.capture.current import CURRENT

    output = folder / "probe.leadline"
    leadline.start(output, quiet=True)
    native, session = CURRENT.native, CURRENT.session
    assert native is not None and session is not None
    values: dict[str, Any] = {"path": [frame["name"] for frame in known_path(native)], "native": native.stats()}
    if framework == "torch":
        use_torch()
    values["available"] = session.available()
    leadline.stop()
    profile = leadline.open(str(output))
    values["operators"] = sorted({node.name for node in profile.tree.find(kind="operator")})
    losses: dict[str, str] = {}
    for loss in profile.losses:
        losses[loss.kind.name] = f"{losses.get(loss.kind.name, '')} {loss.detail}".strip()
    values["losses"] = losses
    if framework == "torch":
        values["received"] = received(profile)
    return values


def known_path(native: Any) -> list[dict[str, Any]]:
    """The call path of a place that is known: this function, a lambda in it, and the function that the lambda calls."""

    def innermost() -> list[dict[str, Any]]:
        path: list[dict[str, Any]] = native.callpath()
        return path

    return (lambda: innermost())()


CALLS = 1_000
"""Of each kind, so that one that is missing in a hundred shows."""


def use_torch() -> None:
    """Run a known number of operators forward and backward, and of allocations; all of them must be in the profile."""
    import torch

    value = torch.ones(4, 4, device="cpu", requires_grad=True)
    for _ in range(CALLS):
        torch.mm(value, value).sum().backward()
        torch.empty(4096, device="cpu")


def received(profile: Any) -> dict[str, int]:
    """How many of the `CALLS` of each kind are in the profile."""
    calls, made = profile.tree.exclusive("call_time").count, profile.tree.exclusive("alloc_bytes").count

    def count(values: Any, name: str) -> int:
        return int(sum(values[node.row] for node in profile.tree.find(kind="operator") if node.name == name))

    return {
        "operators": count(calls, "aten::mm") // 3,  # two more in the backward pass
        "backward operators": count(calls, "MmBackward0"),
        "allocations": min(count(made, "aten::empty"), CALLS),
    }
