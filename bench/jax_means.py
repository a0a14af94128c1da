"""Whether the mean times that Leadline's short windows give for XLA's operations are those of a continuous trace.

    python bench/jax_means.py [--rounds 5] [--seconds 20] [--results FOLDER]

One process a round: it multiplies ten matrices of different sizes in one compiled program, first for so many seconds
under Leadline alone, which takes its windows, then for a tenth of that within a trace of JAX's own, in which Leadline
takes none. Operations are paired by the names that XLA gives them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Spread, add_results_option, machine, markdown_table, write_results

SIZES = [int(160 * 1.3**one) for one in range(10)]


def run(seconds: float, folder: Path) -> None:
    """The measured process; prints the means of the trace's events as JSON, by their names, in ns."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(matrices: list[jax.Array]) -> list[jax.Array]:
        return [each @ each / each.shape[0] for each in matrices]

    matrices = [jnp.ones((size, size)) for size in SIZES]

    def steps(until: float) -> None:
        nonlocal matrices
        while time.monotonic() < until:
            matrices = step(matrices)
            for each in matrices:
                each.block_until_ready()

    steps(time.monotonic() + seconds)
    with jax.profiler.trace(str(folder / "trace")):
        steps(time.monotonic() + seconds / 10)
    [path] = (folder / "trace").rglob("*.xplane.pb")
    times: dict[str, list[float]] = {}
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            for event in line.events:
                times.setdefault(event.name, []).append(event.duration_ns)
    print(json.dumps({name: sum(found) / len(found) for name, found in times.items()}))


def means(file: Path) -> dict[str, float]:
    """What Leadline says of each product by its name in XLA, in ns."""
    import leadline

    sums: dict[str, list[int]] = {}
    for node in leadline.open(file).tree.walk():
        if node.name == "dot_general" and (time_ns := node.exclusive("time")).count:
            one = sums.setdefault(str(node.detail["hlo"]), [0, 0])
            one[0] += time_ns.sum
            one[1] += time_ns.count
    return {name: total / count for name, (total, count) in sums.items()}


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        run(float(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    ratios: list[list[float]] = [[] for _ in SIZES]
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "x.leadline"
            command = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(file), __file__, "--run"]
            done = subprocess.run(
                [*command, str(arguments.seconds), name],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )
            theirs, ours = json.loads(done.stdout.splitlines()[-1]), means(file)
            found = sorted(((mean, mean / theirs[name]) for name, mean in ours.items()), reverse=True)
            print([f"{mean / 1e3:.0f} us: {ratio:.3f}" for mean, ratio in found], flush=True)
            for row, (_, ratio) in zip(ratios, found, strict=True):
                row.append(ratio)
    rows = [[f"{size} x {size}", Spread.of(found).text(3)] for size, found in zip(reversed(SIZES), ratios, strict=True)]
    table = markdown_table(["product", "mean of the windows to that of the trace"], rows)
    made_by = f"--rounds {arguments.rounds} --seconds {arguments.seconds:g}"
    write_results(arguments.results, "jax_means", facts, {"ratios": ratios}, table, arguments=made_by)


if __name__ == "__main__":
    main()
