"""Memory over time of two ranks (gloo): what each way to share the work leaves on each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.report.tools import tool_results

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")
MIB = 1 << 20
PARAMETERS = 8 * MIB
"""Of the whole network: eight layers of 512 by 512."""


def of_ranks(mode: str, folder: Path) -> dict[str, tuple[dict[str, list[float]], dict[str, float]]]:
    """The curves of each rank, and what was alive at its peak."""
    program = Path(__file__).with_name("ranks_program.py")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program), mode]
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "x.leadline", "--tool", "memory_timeline"]
    done = subprocess.run([*command, *launcher], cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = {}
    for result in tool_results(leadline.open(folder / "x.leadline"), "memory_timeline"):
        outputs = result.found["outputs"]
        (table,) = [one for one in outputs if one["kind"] == "table"]
        (curve,) = [one for one in outputs if one["kind"] == "curve"]
        found[result.process] = curve["series"], {row[0]: row[1] for row in table["rows"]}
    assert sorted(found) == ["rank 0", "rank 1"]
    return found


def test_ranks_of_data_parallel_hold_the_same(tmp_path: Path) -> None:
    found = of_ranks("data", tmp_path)
    (_, first), (_, second) = found["rank 0"], found["rank 1"]
    # Parameters and the reducer's buckets are outside of layers; the reducer makes its buckets again in the second
    # forward pass of the whole net, and whether the peak is before, after or while it has both may differ from rank
    # to rank.
    for held in (first, second):
        besides = held.pop("outside any layer") + held.pop("net (forward)", 0)
        assert besides in (pytest.approx(2 * PARAMETERS, rel=0.02), pytest.approx(3 * PARAMETERS, rel=0.02))
    assert first == second  # a gradient for each layer
    gradients = [size for name, size in first.items() if name.endswith(("up (backward)", "down (backward)"))]
    assert gradients == [MIB] * 8


@pytest.mark.slow
def test_ranks_of_tensor_parallel_hold_half_of_each_layer(tmp_path: Path) -> None:
    for curves, _ in of_ranks("tensor", tmp_path).values():
        held = curves["all"]
        steps = held[len(held) // 2 :]  # behind the whole layers that were handed out
        assert max(held) > PARAMETERS
        assert PARAMETERS / 2 <= min(steps) <= max(steps) < 2 * PARAMETERS / 2 * 1.3


@pytest.mark.slow
def test_stages_of_a_pipeline_hold_their_own_layers(tmp_path: Path) -> None:
    for curves, at_peak in of_ranks("pipeline", tmp_path).values():
        layers = {name.split()[0] for name in at_peak if not name.startswith("outside")}
        assert {"half.0.up", "half.0.down", "half.1.up", "half.1.down"} <= layers
        assert not any(name.startswith(("half.2", "net")) for name in layers)
        assert at_peak["outside any layer"] == pytest.approx(PARAMETERS / 2, rel=0.05)
        assert max(curves["all"]) < PARAMETERS * 1.3  # parameters, gradients, a few activations
