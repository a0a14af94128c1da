# fmt: off
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def residual(params, t, obs):
    a, e, w = params
    r = a * (1 - e * e) / (1 + e * jnp.cos(w * t))
    return jnp.mean((r - obs) ** 2)


def total(params, times, observed):
    out = []
    for i in range(len(times)):
        out.append(residual(params, times[i], observed[i]))
    return sum(float(o) for o in out)


def main():
    rng = np.random.default_rng(0)
    times = [rng.normal(size=(30,)).astype(np.float32) for _ in range(400)]
    observed = [rng.normal(size=(30,)).astype(np.float32) for _ in range(400)]
    params = (1.0, 0.1, 0.5)
    best = 1e9
    for step in range(60):
        trial = tuple(float(p + 0.01 * rng.normal()) for p in params)
        value = total(trial, times, observed)
        if value < best:
            best, params = value, trial
    print(best)


if __name__ == "__main__":
    main()
# ruff: noqa
