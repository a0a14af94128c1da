"""A program that uses JAX's profiler itself, at moments that it chooses at random; each of its traces must be whole."""

import random
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    return jnp.tanh(x @ x)


def main(folder, seconds):
    x = jnp.ones((200, 200)) / 200
    until = time.monotonic() + seconds
    traces = runs = 0
    random.seed(1)
    while time.monotonic() < until:
        for _ in range(random.randrange(1, 60)):
            x = step(x)
            runs += 1
        place = f"{folder}/trace{traces}"
        with jax.profiler.trace(place):
            for _ in range(3):
                x = step(x)
                runs += 1
            x.block_until_ready()
        [path] = map(str, Path(place).rglob("*.xplane.pb"))
        found = jax.profiler.ProfileData.from_file(path)
        products = [
            event.name
            for plane in found.planes
            for line in plane.lines
            for event in line.events
            if "dot" in event.name or "ynn_fusion" in event.name
        ]
        assert len([name for name in products if not name.startswith("end:")]) >= 3, products
        traces += 1
    print(runs, traces)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
