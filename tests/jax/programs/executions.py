"""Runs the functions of ways.py and some more, all within a trace of JAX's own, and says how many executions that holds.

executions.py FOLDER [nans]
"""

import runpy
import sys
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp

with jax.profiler.trace(sys.argv[1]):
    runpy.run_path(str(Path(__file__).with_name("ways.py")))
    gradient = jax.jit(jax.grad(lambda x: jnp.tanh(x @ x).sum()))
    into = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones((8, 8))
    for _ in range(9):
        gradient(x)
    for _ in range(8):
        x = into(x)
    x.block_until_ready()
[path] = map(str, Path(sys.argv[1]).rglob("*.xplane.pb"))
names = Counter(
    event.name
    for plane in jax.profiler.ProfileData.from_file(path).planes
    for line in plane.lines
    for event in line.events
    if "Execut" in event.name
)
print(sum(count for name, count in names.items() if "::ExecuteHelper" in name))
