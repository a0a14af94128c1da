"""A multilayer perceptron in plain JAX: one jitted update, and an accuracy that is computed without jit."""

import jax
import jax.numpy as jnp
import numpy as np

layer_sizes, step_size, num_epochs, batch_size, n_targets = [784, 512, 512, 10], 0.01, 4, 128, 10


def random_layer_params(m, n, key, scale=1e-2):
    w_key, b_key = jax.random.split(key)
    return scale * jax.random.normal(w_key, (n, m)), scale * jax.random.normal(b_key, (n,))


def init_network_params(sizes, key):
    keys = jax.random.split(key, len(sizes))
    return [random_layer_params(m, n, k) for m, n, k in zip(sizes[:-1], sizes[1:], keys, strict=False)]


def predict(params, image):
    activations = image
    for w, b in params[:-1]:
        activations = jax.nn.relu(jnp.dot(w, activations) + b)
    final_w, final_b = params[-1]
    logits = jnp.dot(final_w, activations) + final_b
    return logits - jax.nn.logsumexp(logits)


batched_predict = jax.vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(batched_predict(params, images) * targets)


@jax.jit
def update(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return [(w - step_size * dw, b - step_size * db) for (w, b), (dw, db) in zip(params, grads, strict=True)]


def accuracy(params, images, targets):
    return jnp.mean(jnp.argmax(batched_predict(params, images), axis=1) == jnp.argmax(targets, axis=1))


random = np.random.RandomState(0)
images = random.rand(6400, 784).astype(np.float32)
labels = np.eye(n_targets, dtype=np.float32)[random.randint(0, n_targets, 6400)]
params = init_network_params(layer_sizes, jax.random.key(0))
for epoch in range(num_epochs):
    for start in range(0, len(images), batch_size):
        params = update(params, images[start : start + batch_size], labels[start : start + batch_size])
    print(f"epoch {epoch}: accuracy {accuracy(params, images[:1000], labels[:1000])}")
