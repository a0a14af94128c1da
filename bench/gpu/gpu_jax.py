"""JAX on a GPU under Leadline: whose lines its kernels stand on, how many runs are counted, and what a step costs.

    python bench/gpu/gpu_jax.py RESULTS [STEPS]      writes RESULTS/gpu_jax.md and .json

The program runs in turns without and with `leadline run`, from JAX's persistent cache, which a first run fills:
compiling for a GPU takes half a minute. Needs a JAX that finds a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from leadline.profiles import Profile, open_profile

PROGRAM = Path(__file__).with_name("gpu_jax_program.py")
STEP = "jit(train_step)"
TURNS = 2


def ran(command: list[str], cache: Path) -> dict[str, Any]:
    """What the program printed. Raises RuntimeError with what it said last where it failed."""
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-3000:]}")
    told: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return told


def read(profile: Profile) -> dict[str, Any]:
    """GPU time of the step's kernels and copies, the part of it on lines inside of the compiled function, and runs."""
    whole = on_lines = 0
    for kind in ("kernel", "copy"):
        for node in profile.tree.find(kind=kind):
            path = node.path()
            below = next((place for place, frame in enumerate(path) if frame.name == STEP), None)
            if below is None:
                continue
            spent = node.exclusive("gpu_time").sum
            whole += spent
            on_lines += spent if any(frame.kind == "python" for frame in path[below:]) else 0
    runs = sum(node.exclusive("call_time").count for node in profile.tree.walk() if node.name == STEP)
    lost = {loss.kind.name.lower(): loss.count for loss in profile.losses if loss.count}
    return {"gpu_ns": whole, "on_lines_ns": on_lines, "runs": runs, "losses": lost}


def page(found: dict[str, Any]) -> str:
    """Markdown."""
    rows = [
        (
            "GPU time of the step on lines inside of its function",
            f"{found['on_lines_ns'] / found['gpu_ns']:.2%}",
        ),
        ("of a GPU time of", f"{found['gpu_ns'] / 1e6:,.0f} ms"),
        ("runs of the step, and counted", f"{found['steps']:,}, {found['runs']:,}"),
        ("lost", json.dumps(found["losses"])),
        ("a step without Leadline, in turns", ", ".join(f"{ms:.2f} ms" for ms in found["plain_ms"])),
        ("a step under `leadline run`", ", ".join(f"{ms:.2f} ms" for ms in found["measured_ms"])),
    ]
    lines = [
        f"# JAX {found['jax']} on {found['device']}",
        "",
        f"By `bench/gpu/gpu_jax.py`, {found['date']}: a transformer of four layers in a scan, whose step is graphs of",
        "CUDA (command buffers) of small kernels.",
        "",
        "| | |",
        "|---|---|",
    ]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows)]) + "\n"


def main() -> int:
    results = Path(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    program = [str(PROGRAM), str(steps)]
    with tempfile.TemporaryDirectory() as folder:
        cache, output = Path(folder) / "cache", Path(folder) / "out.leadline"
        told = ran([str(PROGRAM), "1"], cache)
        plain, measured = [], []
        for _ in range(TURNS):
            plain.append(ran(program, cache)["step_ms"])
            measured.append(ran(["-m", "leadline", "run", "-o", str(output), *program], cache)["step_ms"])
        found = read(open_profile(output))
    date = subprocess.run(["date", "-I"], capture_output=True, text=True, check=True).stdout.strip()
    found |= {"steps": steps + 5, "plain_ms": plain, "measured_ms": measured, "date": date}
    found |= {"device": told["device"], "jax": told["jax"]}
    (results / "gpu_jax.json").write_text(json.dumps(found, indent=1) + "\n")
    (results / "gpu_jax.md").write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
