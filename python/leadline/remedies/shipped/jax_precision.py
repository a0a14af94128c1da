"""Precision of JAX's matrix products."""

from __future__ import annotations

import contextlib
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial

_OPTION = "jax_default_matmul_precision"
_LEAST = (None, "default", "bfloat16", "fastest")
"""What JAX multiplies with where nothing is set, and its other names."""


class JaxMatmulPrecision(Remedy):
    name = "jax_matmul_precision"
    changes = "sets jax_default_matmul_precision, whatever the program sets"
    value = "bfloat16"
    choices = ("bfloat16", "tensorfloat32", "float32")
    precision = "bfloat16"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._before: str | None = None

    def start(self, trial: Trial) -> None:
        trial.when_imported("jax", lambda jax: self._set(trial, jax))

    def _set(self, trial: Trial, jax: Any) -> None:
        """The program's own calls set nothing."""
        self._before = jax.config.jax_default_matmul_precision
        owner = type(jax.config)
        original = owner.update
        original(jax.config, _OPTION, self.chosen)

        def update(config: Any, name: str, value: Any) -> Any:
            if name != _OPTION:
                return original(config, name, value)
            self._before = value
            return None

        def keep(value: Any) -> Any:
            self._before = value
            return contextlib.nullcontext()

        trial.replaced.attribute(owner, "update", update)
        trial.replaced.attribute(jax, "default_matmul_precision", keep)

    def outcome(self, trial: Trial) -> str:
        import sys

        jax = sys.modules.get("jax")
        if jax is None:
            return "the program does not import jax"
        if self._before == self.chosen:
            return f"the program has the precision {self.chosen} already"
        if self._before in _LEAST and self.chosen in _LEAST:
            return "JAX multiplies in its least precise type already"
        return "on this CPU it changes no matrix product" if jax.default_backend() == "cpu" else ""
