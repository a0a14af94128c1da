"""Random numbers of a run: the same in all runs, or others from the first call of the outermost module on.

Seeds that the program sets itself stay as they are; where it sets none, all runs begin with the same one.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.remedies.programs import Program
    from leadline.remedies.trial import Trial

_OTHER = 7_368_787


class Seeds:
    """Of one process."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._redrawn = False

    def install(self) -> None:
        seed = self._trial.plan.seed
        random.seed(seed)
        self._trial.when_imported("numpy", lambda module: module.random.seed(seed))
        self._trial.when_imported("torch", lambda module: module.manual_seed(seed))
        if self._trial.plan.rounding:
            self._trial.on_module(self._round)
            self._trial.programs.actions.append(self._watch_program)
        if self._trial.plan.redraw:
            self._trial.on_module(self._redraw)

    def _redraw(self, module: Any) -> None:
        if self._redrawn:
            return
        self._redrawn = True
        seed = _OTHER + self._trial.plan.redraw
        random.seed(seed)
        for name, function in (("numpy.random", "seed"), ("torch", "manual_seed")):
            owner: Any = sys.modules.get(name)
            if owner is not None:
                getattr(owner, function)(seed)

    def _round(self, module: Any) -> None:
        """Each parameter times 1 +- `rounding`, without touching the program's random numbers."""
        import torch

        generator = torch.Generator().manual_seed(_OTHER)
        with torch.no_grad():
            for one in module.parameters():
                if one.is_floating_point():
                    noise = torch.rand(one.shape, generator=generator, dtype=torch.float32).mul_(2).sub_(1)
                    one.mul_(1 + noise.to(device=one.device, dtype=one.dtype) * self._trial.plan.rounding)

    def _watch_program(self, program: Program) -> None:
        if program.name == self._trial.plan.program:
            program.before = self._round_arguments

    def _round_arguments(self, program: Program, arguments: Any, named: Any) -> Any:
        """JAX: the arrays of floats that the step's program is given first, as above."""
        import jax
        import numpy

        program.before = None
        draw = numpy.random.default_rng(_OTHER)

        def changed(leaf: Any) -> Any:
            if not isinstance(leaf, jax.Array) or not str(leaf.dtype).startswith(("float", "bfloat")) or not leaf.ndim:
                return leaf
            noise = 1 + draw.uniform(-1, 1, leaf.shape).astype("float32") * self._trial.plan.rounding
            return jax.device_put((leaf * noise).astype(leaf.dtype), leaf.sharding)

        return jax.tree_util.tree_map(changed, (arguments, named))
