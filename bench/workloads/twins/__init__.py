"""Six models, each written in PyTorch and in JAX with the same shapes, loss and optimizer, for comparing frameworks.

Every file offers `in_torch()` and `in_jax()`: a function that trains one step and waits for its end.
"""

MODELS = ("mlp", "cnn", "transformer", "unet", "gnn", "recommender")
