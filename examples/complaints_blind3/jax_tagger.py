"""Part of speech tagger in plain JAX, sentences of many lengths."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCAB, DIM, TAGS = 5000, 64, 17
optimizer = optax.adam(1e-3)


def init_params(key):
    k = jax.random.split(key, 6)
    return {
        "embed": jax.random.normal(k[0], (VOCAB, DIM)) * 0.05,
        "wq": jax.random.normal(k[1], (DIM, DIM)) * 0.1,
        "wk": jax.random.normal(k[2], (DIM, DIM)) * 0.1,
        "w1": jax.random.normal(k[3], (DIM, 4 * DIM)) * 0.1,
        "w2": jax.random.normal(k[4], (4 * DIM, DIM)) * 0.1,
        "out": jax.random.normal(k[5], (DIM, TAGS)) * 0.1,
    }


def loss_fn(params, tokens, tags, mask):
    x = params["embed"][tokens]
    scores = (x @ params["wq"]) @ (x @ params["wk"]).swapaxes(1, 2) / DIM ** 0.5
    scores = jnp.where(mask[:, None, :], scores, -1e9)
    x = x + jax.nn.softmax(scores) @ x
    x = x + jax.nn.gelu(x @ params["w1"]) @ params["w2"]
    losses = optax.softmax_cross_entropy_with_integer_labels(x @ params["out"], tags)
    return (losses * mask).sum() / mask.sum()


@jax.jit
def train_step(params, opt_state, tokens, tags, mask):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, tags, mask)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def make_sentences(rng, count):
    lengths = np.clip(rng.normal(24, 2.5, count).astype(int), 4, 80)
    return [(rng.integers(1, VOCAB, n), rng.integers(0, TAGS, n)) for n in lengths]


def pad_batch(sentences):
    longest = max(len(words) for words, _ in sentences)
    tokens = np.zeros((len(sentences), longest), np.int32)
    tags = np.zeros((len(sentences), longest), np.int32)
    for row, (words, labels) in enumerate(sentences):
        tokens[row, :len(words)] = words
        tags[row, :len(labels)] = labels
    return tokens, tags, tokens != 0


def main():
    rng = np.random.default_rng(0)
    sentences = make_sentences(rng, 640)
    params = init_params(jax.random.PRNGKey(0))
    opt_state = optimizer.init(params)
    steps, begin = 0, time.perf_counter()
    for epoch in range(2):
        rng.shuffle(sentences)
        for start in range(0, len(sentences), 16):
            batch = pad_batch(sentences[start:start + 16])
            params, opt_state, loss = train_step(params, opt_state, *batch)
            steps += 1
        print(f"epoch {epoch} loss {float(loss):.4f} {time.perf_counter() - begin:.1f} s")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
