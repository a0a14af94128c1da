"""Learn a controller through a vectorised ball simulator; contacts are rare and costly."""
import jax
import jax.numpy as jnp
import optax

WORLDS, BALLS, HORIZON, DT = 64, 16, 12, 0.01


def free_flight(pos, vel):
    return pos + DT * vel, vel - DT * jnp.array([0.0, 9.81])


def resolve_contacts(pos, vel):
    """Projected Gauss-Seidel over all pairs; needed only when balls touch."""
    def sweep(carry, _):
        p, v = carry
        delta = p[:, None] - p[None, :]
        dist = jnp.sqrt((delta**2).sum(-1) + 1e-6)
        depth = jnp.maximum(0.1 - dist, 0.0) * (1 - jnp.eye(BALLS))
        normal = delta / dist[..., None]
        approach = jnp.minimum(((v[:, None] - v[None, :]) * normal).sum(-1), 0.0)
        impulse = -0.5 * approach * (depth > 0)
        v = v + (impulse[..., None] * normal).sum(1)
        p = p + 0.5 * (depth[..., None] * normal).sum(1)
        return (p, v), None

    (pos, vel), _ = jax.lax.scan(sweep, (pos, vel), None, length=6)
    return free_flight(pos, vel)


def touching(pos):
    delta = pos[:, None] - pos[None, :]
    return ((delta**2).sum(-1) + jnp.eye(BALLS)).min() < 0.1**2


def step_worlds(pos, vel):
    hit = jax.vmap(touching)(pos)

    def some_touch(pos, vel):
        slow, fast = jax.vmap(resolve_contacts)(pos, vel), jax.vmap(free_flight)(pos, vel)
        pick = hit[:, None, None]
        return jnp.where(pick, slow[0], fast[0]), jnp.where(pick, slow[1], fast[1])

    return jax.lax.cond(hit.any(), some_touch, jax.vmap(free_flight), pos, vel)


def policy(params, pos, vel):
    x = jnp.concatenate([pos.reshape(-1), vel.reshape(-1)])
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    hidden = jnp.tanh(hidden @ params["w2"] + params["b2"])
    return (hidden @ params["w3"]).reshape(BALLS, 2)


def rollout(params, pos, vel):
    def body(carry, _):
        pos, vel = carry
        vel = vel + DT * 4.0 * jax.vmap(policy, in_axes=(None, 0, 0))(params, pos, vel)
        return step_worlds(pos, vel), None

    (pos, vel), _ = jax.lax.scan(body, (pos, vel), None, length=HORIZON)
    return ((pos - jnp.array([0.0, 1.0])) ** 2).mean() + 0.01 * (vel**2).mean()


def fresh_worlds(key):
    """Balls start on a jittered lattice, so most worlds never see a contact."""
    side = 4
    grid = jnp.stack(jnp.meshgrid(jnp.arange(side), jnp.arange(side)), -1).reshape(-1, 2) * 0.5
    k1, k2 = jax.random.split(key)
    pos = grid + 0.05 * jax.random.normal(k1, (WORLDS, BALLS, 2)).clip(-2, 2)
    return pos, 0.3 * jax.random.normal(k2, (WORLDS, BALLS, 2)).clip(-2, 2)


def init_params(key, width=512):
    k1, k2, k3 = jax.random.split(key, 3)
    return {"w1": jax.random.normal(k1, (BALLS * 4, width)) * 0.1, "b1": jnp.zeros(width),
            "w2": jax.random.normal(k2, (width, width)) * 0.04, "b2": jnp.zeros(width),
            "w3": jax.random.normal(k3, (width, BALLS * 2)) * 0.02}


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


@jax.jit
def train_step(params, opt_state, pos, vel):
    loss, grads = jax.value_and_grad(rollout)(params, pos, vel)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def main(steps=40):
    key = jax.random.PRNGKey(0)
    key, sub = jax.random.split(key)
    params = init_params(sub)
    opt_state = optimizer.init(params)
    for step in range(steps):
        key, sub = jax.random.split(key)
        pos, vel = fresh_worlds(sub)
        params, opt_state, loss = train_step(params, opt_state, pos, vel)
        if step % 20 == 0:
            print(f"step {step}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
