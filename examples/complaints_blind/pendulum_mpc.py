# fmt: off
import time
import jax
import jax.numpy as jnp
import numpy as np

HORIZON = 25


def dynamics(state, torque):
    theta, omega = state
    omega = omega + 0.05 * (14.7 * jnp.sin(theta) + 3.0 * torque)
    theta = theta + 0.05 * omega
    return jnp.stack([theta, omega])


def rollout_cost(plan, state, goal):
    def body(s, u):
        s = dynamics(s, u)
        return s, (s[0] - goal) ** 2 + 0.1 * s[1] ** 2 + 0.001 * u ** 2

    _, costs = jax.lax.scan(body, state, plan)
    return costs.sum()


def improve(plan, state, goal, lr):
    cost, grad = jax.value_and_grad(rollout_cost)(plan, state, goal)
    return plan - lr * jnp.clip(grad, -5, 5), cost


class Controller:
    def __init__(self, lr=0.02):
        self.plan = jnp.zeros(HORIZON)
        self.lr = lr

    def act(self, state, goal):
        solve = jax.jit(lambda plan, state: improve(plan, state, goal, self.lr))
        self.plan, cost = solve(self.plan, state)
        torque = self.plan[0]
        self.plan = jnp.concatenate([self.plan[1:], jnp.zeros(1)])
        return torque, cost


def main():
    rng = np.random.default_rng(0)
    controller = Controller()
    state = jnp.array([np.pi, 0.0])
    t0 = time.perf_counter()
    for step in range(1, 51):
        goal = 0.1 * np.sin(step / 10)
        torque, cost = controller.act(state, goal)
        state = dynamics(state, torque) + jnp.asarray(rng.normal(0, 0.01, 2), dtype=jnp.float32)
        if step % 10 == 0:
            print(f"t={step} theta={float(state[0]):+.3f} cost={float(cost):.2f} "
                  f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms per control step")


if __name__ == "__main__":
    main()
# ruff: noqa
