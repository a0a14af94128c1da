"""Fits the parameters of a building's thermal model through a simulated day."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.interpolate import CubicSpline

HORIZON, ROOMS = 1440, 12
rng = np.random.default_rng(0)
HOURS = np.linspace(0, 24, 97)
OUTSIDE = CubicSpline(HOURS, 8 + 6 * np.sin((HOURS - 9) / 24 * 2 * np.pi) + rng.normal(0, 0.5, 97))
SUN = CubicSpline(HOURS, np.clip(np.sin((HOURS - 6) / 12 * np.pi), 0, None))


def weather_at(hour):
    """Temperature and sun from the station's table, which has a row every 15 minutes."""
    return np.array([OUTSIDE(hour), SUN(hour)], np.float32)


def simulate(params, start, hours):
    coupling = jax.nn.softplus(params["coupling"])
    loss_rate = jax.nn.softplus(params["loss"])

    def tick(temps, weather):
        outside, sun = weather
        flow = coupling @ temps - coupling.sum(1) * temps
        heating = jnp.tanh(params["gain"] * (20.0 - temps))
        temps = temps + 0.01 * (flow + loss_rate * (outside - temps) + heating + 0.2 * sun)
        return temps, temps

    return jax.lax.scan(tick, start, hours)[1]


def loss_fn(params, start, hours, measured):
    return jnp.mean((simulate(params, start, hours) - measured) ** 2)


optimizer = optax.adam(3e-3)


@jax.jit
def train_step(params, opt_state, start, hours, measured):
    loss, grads = jax.value_and_grad(loss_fn)(params, start, hours, measured)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    hours = jnp.asarray(weather_at(np.linspace(0, 24, HORIZON)).T)
    start = jnp.asarray(rng.normal(18, 1, ROOMS), jnp.float32)
    measured = jnp.asarray(19 + np.sin(np.linspace(0, 6, HORIZON))[:, None] + rng.normal(0, 0.1, (HORIZON, ROOMS)), jnp.float32)
    params = {"coupling": jnp.full((ROOMS, ROOMS), -4.0), "loss": jnp.full((ROOMS,), -1.0), "gain": jnp.ones((ROOMS,))}
    opt_state = optimizer.init(params)
    params, opt_state, loss = train_step(params, opt_state, start, hours, measured)
    steps, begin = 16, time.perf_counter()
    for step in range(steps):
        params, opt_state, loss = train_step(params, opt_state, start, hours, measured)
        if step % 5 == 0:
            print(f"step {step} loss {float(loss):.4f}")
    jax.block_until_ready(params)
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
