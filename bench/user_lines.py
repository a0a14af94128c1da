"""How much of the time of operations that XLA executes stands on a line of the program or of its libraries.

    pip install "transformers<4.49" dm-haiku equimo diffrax      # public models; those that are not there are left out
    python bench/user_lines.py [--steps 60] [--only GPT-2]

Each model is trained for a while under `leadline run` in a process of its own. What counts is the exclusive time of
operations below `jit(...)`; an operation is on a line where a Python frame lies between it and its program, and frames
of JAX itself are none. That is asked of the training step. Operations that JAX runs as programs of their own (random
weights, copies) have no line inside: they stand on the line that called them, which the share of the whole run counts.
Times are estimates as in any profile, shares of them hardly depend on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from common import add_results_option, machine, markdown_table, write_results
from workloads.public_jax import PUBLIC
from workloads.twins import MODELS

MUST = 0.995
STEPS = ("jit(update)", "jit(train_step)")
"""What the models call the function that they train with."""
OF_THE_ANCHORS = ("mlp", "transformer", "cnn", "gnn")


def names() -> list[str]:
    return [*(name for name in MODELS if name in OF_THE_ANCHORS), *PUBLIC]


def train(name: str, steps: int) -> None:
    """In the measured process."""
    step = importlib.import_module(f"workloads.twins.{name}").in_jax() if name in MODELS else PUBLIC[name][0]()
    for _ in range(steps):
        step()


def lines_of(file: Path) -> dict[str, Any]:
    """Sums over a profile in nanoseconds: of operations of the training step and of those on lines inside of it; of all
    operations and of those on any line."""
    import leadline
    from leadline.schema import FrameKind

    tree = leadline.open(file).tree
    kinds, parents = tree.kinds.tolist(), tree.parent.tolist()
    sums: Counter[str] = Counter()
    without: Counter[str] = Counter()
    for row, ns in enumerate(tree.exclusive("time").sum.tolist()):
        if not ns or kinds[row] != FrameKind.OPERATOR:
            continue
        inside, above = False, parents[row]
        while above >= 0 and kinds[above] != FrameKind.OPERATOR:
            inside = inside or kinds[above] == FrameKind.PYTHON
            above = parents[above]
        if above < 0 or not tree.node(above).name.startswith("jit("):
            continue
        sums["all_ns"] += ns
        if inside or tree.node(above).nearest("python") is not None:
            sums["all_on_lines_ns"] += ns
        if tree.node(above).name in STEPS:
            sums["step_ns"] += ns
            sums["step_on_lines_ns"] += ns if inside else 0
            if not inside:
                without[f"{tree.node(row).name} ({tree.node(row).detail.get('hlo')})"] += ns
    return {**sums, "without": without.most_common(5)}


def measure(name: str, steps: int, folder: Path) -> dict[str, Any] | None:
    """None where the model's package is not installed."""
    package = PUBLIC[name][1] if name in PUBLIC else ""
    try:
        version = f"{package} {importlib.metadata.version(package)}" if package else ""
    except importlib.metadata.PackageNotFoundError:
        return None
    output = folder / "run.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(output), __file__, "--train", name]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "USE_TORCH": "0", "USE_JAX": "1"}
    subprocess.run([*command, "--steps", str(steps)], env=environment, check=True, stdout=sys.stderr)
    return {"package": version, **lines_of(output)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", choices=names())
    parser.add_argument("--train", choices=names(), help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train, arguments.steps)
        return 0
    facts = {**machine(), "jax": importlib.metadata.version("jax")}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in [arguments.only] if arguments.only else names():
            if (one := measure(name, arguments.steps, Path(folder))) is not None:
                found[name] = one
                print(name, one, file=sys.stderr, flush=True)
    shares = {name: one["step_on_lines_ns"] / one["step_ns"] for name, one in found.items()}
    rows = [
        [
            name,
            one["package"],
            f"{one['step_ns'] / 1e6:.0f}",
            f"{100 * shares[name]:.2f} %",
            f"{100 * one['all_on_lines_ns'] / one['all_ns']:.2f} %",
            ", ".join(what for what, _ in one["without"][:2]) or "-",
        ]
        for name, one in found.items()
    ]
    report = (
        f"jax {facts['jax']}, {arguments.steps} steps of training each; must be {100 * MUST:.1f} %.\n\n"
        + markdown_table(
            [
                "model",
                "package",
                "operations of the step, ms",
                "on a line inside",
                "of the whole run on a line",
                "on none",
            ],
            rows,
        )
    )
    if not arguments.only:
        write_results(arguments.results, "user_lines", facts, {"models": found}, report)
    else:
        print(report)
    return 0 if min(shares.values()) >= MUST else 1


if __name__ == "__main__":
    sys.exit(main())
