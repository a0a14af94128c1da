"""Train a small network online with an extended Kalman filter: tide levels at three gauges."""
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

STEPS, WINDOW, GAUGES = 1500, 96, 3


def init_params(key, sizes):
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (fan_in, fan_out)) / np.sqrt(fan_in), jnp.zeros(fan_out)))
    return params


def forward(params, x):
    """One shared network walks over the window; the mean of its states gives the three levels."""
    (w1, b1), (w2, b2), (w3, b3) = params
    h = jnp.tanh(x @ w1 + b1)
    h = jnp.tanh(h @ w2 + b2)
    return (h @ w3 + b3).mean(0)


def make_series(n):
    rng = np.random.default_rng(0)
    t = np.arange(n + WINDOW)
    base = np.sin(t[:, None] * np.array([0.505, 0.261, 0.0805])) + 0.05 * rng.standard_normal((n + WINDOW, 3))
    frames = np.stack([np.roll(base, s, axis=0) for s in range(2)], axis=-1).reshape(n + WINDOW, 6)
    return frames.astype(np.float32), base.astype(np.float32)


params = init_params(jax.random.PRNGKey(0), [6, 16, 16, GAUGES])
theta, unravel = ravel_pytree(params)
N = theta.shape[0]
Q, R = 1e-5, 0.02 * jnp.eye(GAUGES)


def predict(theta, window):
    return forward(unravel(theta), window)


@jax.jit
def ekf_step(theta, cov, window, target):
    """One measurement update of the weights and of their covariance."""
    h = jax.jacrev(predict)(theta, window)
    residual = target - predict(theta, window)
    ph = cov @ h.T
    gain = ph @ jnp.linalg.inv(h @ ph + R)
    theta = theta + gain @ residual
    cov = cov - gain @ ph.T
    cov = cov + Q * jnp.eye(cov.shape[0])
    return theta, cov, jnp.sum(residual**2)


def main():
    global theta
    frames, levels = make_series(STEPS + 1)
    frames, levels = jnp.asarray(frames), jnp.asarray(levels)
    cov = jnp.eye(N)
    print(f"{N} weights, {GAUGES} gauges")
    errors = []
    start = time.perf_counter()
    for step in range(STEPS):
        window = jax.lax.dynamic_slice_in_dim(frames, step, WINDOW)
        theta, cov, error = ekf_step(theta, cov, window, levels[step + WINDOW])
        errors.append(error)
        if (step + 1) % 250 == 0:
            print(f"step {step + 1} error {float(jnp.stack(errors[-250:]).mean()):.4f}")
    jax.block_until_ready(theta)
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.2f} ms a step")


if __name__ == "__main__":
    main()
