"""Fit a small MLP on a large table that stays on the device."""
import jax
import jax.numpy as jnp
import optax

ROWS, FEATURES, BATCH = 400_000, 16, 512


def init_params(key, sizes=(FEATURES, 256, 256, 1)):
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (fan_in, fan_out)) * (2 / fan_in) ** 0.5, jnp.zeros(fan_out)))
    return params


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return (x @ w + b).squeeze(-1)


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def make_table(key):
    kx, kn = jax.random.split(key)
    x = jax.random.normal(kx, (ROWS, FEATURES))
    y = jnp.sin(x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] ** 2
    return x, y + 0.1 * jax.random.normal(kn, (ROWS,))


optimizer = optax.adamw(optax.cosine_decay_schedule(1e-3, 500))


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


@jax.jit
def sample_batch(key, table_x, table_y):
    rows = jax.random.choice(key, ROWS, (BATCH,), replace=False)
    return table_x[rows], table_y[rows]


def main(steps=60):
    key = jax.random.PRNGKey(0)
    key, k_data, k_init = jax.random.split(key, 3)
    table_x, table_y = make_table(k_data)
    params = init_params(k_init)
    opt_state = optimizer.init(params)
    losses = []
    for step in range(steps):
        key, sub = jax.random.split(key)
        x, y = sample_batch(sub, table_x, table_y)
        params, opt_state, loss = train_step(params, opt_state, x, y)
        losses.append(loss)
        if (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {float(jnp.stack(losses).mean()):.4f}")
            losses.clear()


if __name__ == "__main__":
    main()
