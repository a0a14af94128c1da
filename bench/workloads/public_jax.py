"""Public models of JAX's libraries, a training step each; their packages are installed by who measures them.

Weights are random and batches small: where an operation stands does not depend on either.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def gpt2() -> Step:
    """GPT-2 of transformers (flax linen), trained with optax's AdamW."""
    import jax
    import jax.numpy as jnp

    optax, transformers = _optional("optax"), _optional("transformers")
    shape = transformers.GPT2Config(n_layer=4, n_embd=128, n_head=4, vocab_size=2000, n_positions=64)
    model = transformers.FlaxGPT2LMHeadModel(shape)
    tokens = jax.random.randint(jax.random.key(0), (4, 64), 0, 2000)

    def loss_of(weights: Any, key: Any) -> Any:
        scores = model(tokens, params=weights, dropout_rng=key, train=True).logits
        return optax.softmax_cross_entropy_with_integer_labels(scores[:, :-1], tokens[:, 1:]).mean()

    return _trained(model.params, loss_of, optax.adamw(1e-3), jnp.asarray)


def resnet18() -> Step:
    """ResNet-18 of Haiku, with its state of moving averages, trained with optax's SGD with momentum."""
    import jax

    hk, optax = _optional("haiku"), _optional("optax")
    network = hk.without_apply_rng(
        hk.transform_with_state(lambda images: hk.nets.ResNet18(10)(images, is_training=True))
    )
    images = jax.random.normal(jax.random.key(0), (8, 32, 32, 3))
    labels = jax.numpy.arange(8)
    weights, averages = jax.jit(network.init)(jax.random.key(1), images)

    def loss_of(weights: Any, _key: Any) -> Any:
        scores, _ = network.apply(weights, averages, images)
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    return _trained(weights, loss_of, optax.sgd(1e-2, momentum=0.9))


def vit() -> Step:
    """A vision transformer of Equimo (Equinox), mapped over images, trained with optax's Adam."""
    import equinox as eqx
    import jax

    optax = _optional("optax")
    model = _optional("equimo.models").VisionTransformer(
        img_size=32, in_channels=3, dim=96, patch_size=8, num_heads=[3], depths=[3], num_classes=10,
        key=jax.random.key(0),
    )  # fmt: skip
    images = jax.random.normal(jax.random.key(1), (8, 3, 32, 32))
    labels = jax.numpy.arange(8)
    weights, rest = eqx.partition(model, eqx.is_inexact_array)

    def loss_of(weights: Any, key: Any) -> Any:
        whole = eqx.combine(weights, rest)
        scores = jax.vmap(lambda image, key: whole(image, key=key))(images, jax.random.split(key, 8))
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    return _trained(weights, loss_of, optax.adam(1e-3))


def neural_ode() -> Step:
    """An ordinary differential equation whose right side is an MLP (Equinox), solved and differentiated by diffrax."""
    import equinox as eqx
    import jax

    diffrax, optax = _optional("diffrax"), _optional("optax")
    field = eqx.nn.MLP(2, 2, 64, 2, key=jax.random.key(0))
    starts = jax.random.normal(jax.random.key(1), (32, 2))
    weights, rest = eqx.partition(field, eqx.is_inexact_array)

    def loss_of(weights: Any, _key: Any) -> Any:
        whole = eqx.combine(weights, rest)
        term = diffrax.ODETerm(lambda _time, state, _arguments: whole(state))

        def end(start: Any) -> Any:
            solved = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, start)
            return solved.ys[-1]

        return (jax.vmap(end)(starts) ** 2).mean()

    return _trained(weights, loss_of, optax.adam(1e-3))


def _optional(package: str) -> Any:
    """Of packages that type checkers need not find."""
    return importlib.import_module(package)


def _trained(weights: Any, loss_of: Any, optimizer: Any, prepare: Callable[[Any], Any] = lambda leaf: leaf) -> Step:
    """`loss_of(weights, key)`: the loss of the one batch."""
    import jax

    optax = _optional("optax")

    @jax.jit
    def train_step(weights: Any, state: Any, key: Any) -> Any:
        loss, slopes = jax.value_and_grad(loss_of)(weights, key)
        updates, state = optimizer.update(slopes, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    weights = jax.tree.map(prepare, weights)
    held = [weights, optimizer.init(weights), jax.random.key(0)]

    def step() -> Any:
        *held[:2], loss = train_step(*held)
        return loss.block_until_ready()

    return step


PUBLIC: dict[str, tuple[Callable[[], Step], str]] = {
    "GPT-2": (gpt2, "transformers"),
    "ResNet-18": (resnet18, "dm-haiku"),
    "vision transformer": (vit, "equimo"),
    "neural ODE": (neural_ode, "diffrax"),
}
"""Each with the package that it comes from."""
