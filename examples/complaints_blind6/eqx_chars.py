"""Character model in Equinox, trained with optax."""
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Block(eqx.Module):
    attn: eqx.nn.MultiheadAttention
    norm1: eqx.nn.LayerNorm
    norm2: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, dim, heads, key):
        k1, k2, k3 = jax.random.split(key, 3)
        self.attn = eqx.nn.MultiheadAttention(heads, dim, key=k1)
        self.norm1 = eqx.nn.LayerNorm(dim)
        self.norm2 = eqx.nn.LayerNorm(dim)
        self.up = eqx.nn.Linear(dim, 4 * dim, key=k2)
        self.down = eqx.nn.Linear(4 * dim, dim, key=k3)

    def __call__(self, x, mask):
        h = jax.vmap(self.norm1)(x)
        x = x + self.attn(h, h, h, mask=mask)
        h = jax.vmap(self.norm2)(x)
        return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(h)))


class CharModel(eqx.Module):
    embed: eqx.nn.Embedding
    pos: jax.Array
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, vocab, dim, depth, length, key):
        keys = jax.random.split(key, depth + 3)
        self.embed = eqx.nn.Embedding(vocab, dim, key=keys[0])
        self.pos = 0.02 * jax.random.normal(keys[1], (length, dim))
        self.blocks = [Block(dim, 4, k) for k in keys[2:-1]]
        self.head = eqx.nn.Linear(dim, vocab, key=keys[-1])

    def __call__(self, tokens):
        x = jax.vmap(self.embed)(tokens) + self.pos
        mask = jnp.tril(jnp.ones((len(tokens), len(tokens)), dtype=bool))
        for block in self.blocks:
            x = block(x, mask)
        return jax.vmap(self.head)(x)


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss_and_grad(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def main():
    rng = np.random.default_rng(0)
    text = np.cumsum(rng.integers(0, 4, 20000)) % 64
    length, batch, steps = 32, 8, 80
    model = CharModel(64, 48, 5, length, jax.random.PRNGKey(0))
    optim = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    t0 = time.time()
    for step in range(steps):
        starts = rng.integers(0, len(text) - length - 1, batch)
        x = np.stack([text[s:s + length] for s in starts])
        y = np.stack([text[s + 1:s + length + 1] for s in starts])
        loss, grads = loss_and_grad(model, x, y)
        updates, opt_state = optim.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
        model = eqx.apply_updates(model, updates)
        if step % 20 == 19:
            print(f"step {step + 1}  loss {loss:.3f}  {(time.time() - t0) / 20 * 1e3:.0f} ms/step")
            t0 = time.time()


if __name__ == "__main__":
    main()
