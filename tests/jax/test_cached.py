"""Programs from JAX's persistent cache whose source has changed since."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import leadline
from leadline.profiles import Profile

PROGRAM = """
import sys
import jax
import jax.numpy as jnp


@jax.jit
def train_step(x):
    return jnp.tanh(x @ x)


x = jnp.ones((64, 64))
for _ in range(20):
    x = train_step(x)
x.block_until_ready()
"""


def _run(folder: Path, text: str) -> Profile:
    program, output = folder / "train.py", folder / "out.leadline"
    program.write_text(text)
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "run", "-q", "-o", str(output), str(program)],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **cache},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return leadline.open(output)


def test_lines_that_have_moved_since_the_cache_was_filled_are_said_to_be_stale(tmp_path: Path) -> None:
    before = _run(tmp_path, PROGRAM)
    after = _run(tmp_path, PROGRAM.replace("import sys\n", "import sys\n\n\n\n\n"))
    told = [loss.detail for loss in after.losses if "persistent cache" in loss.detail]
    assert len(told) == 1 and "have moved since" in told[0]
    assert not any("persistent cache" in loss.detail for loss in before.losses)
    [step] = list(after.tree.find(kind="operator", name="jit(train_step)"))
    assert "have moved since" in step.detail["lines"]
    assert all("lines" not in node.detail for node in before.tree.find(kind="operator", name="jit(train_step)"))


def test_lines_that_moved_inside_of_their_function_are_stale_and_those_that_did_not_are_not(tmp_path: Path) -> None:
    _run(tmp_path, PROGRAM)
    same = _run(tmp_path, PROGRAM)
    assert same.meta["available"]["jax"]["cached_programs"] > 0
    assert not any("persistent cache" in loss.detail for loss in same.losses)
    assert all("lines" not in node.detail for node in same.tree.find(kind="operator", name="jit(train_step)"))
    longer = PROGRAM.replace("    return jnp.tanh(x @ x)", "    y = x\n\n    return jnp.tanh(y @ y)\n\n\n    # the end")
    moved = _run(tmp_path, longer)
    [step] = list(moved.tree.find(kind="operator", name="jit(train_step)"))
    assert "1 have moved since" in step.detail["lines"]
