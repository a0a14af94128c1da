"""Precision of JAX's matrix products."""

from __future__ import annotations

import os

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial

_VARIABLE = "JAX_DEFAULT_MATMUL_PRECISION"


class JaxMatmulPrecision(Remedy):
    name = "jax_matmul_precision"
    changes = "sets jax_default_matmul_precision"
    value = "bfloat16"
    choices = ("bfloat16", "tensorfloat32", "float32")
    precision = "bfloat16"

    def environment(self) -> dict[str, str]:
        return {_VARIABLE: self.chosen}

    def outcome(self, trial: Trial) -> str:
        import sys

        jax = sys.modules.get("jax")
        if jax is None:
            return "the program does not import jax"
        if str(jax.config.jax_default_matmul_precision) != self.chosen:
            return "the program sets the precision itself"
        if os.environ.get("LEADLINE_TRIAL") and jax.default_backend() == "cpu":
            return "on this CPU it changes no product"
        return ""
