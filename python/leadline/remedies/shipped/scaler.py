"""Loss scaling for float16: the loss is scaled before `backward()`, gradients are unscaled before the optimizer reads
them, and a step with infinite gradients changes nothing.

Gradients that the program reads between both (to clip them) would be scaled ones; such a program is left alone.
"""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.trial import Trial


class Scaler:
    """`refused`: why it cannot be used here; empty where it can."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._scaler: Any = None
        self.refused = ""

    def install(self) -> None:
        self._trial.when_imported("torch.optim.optimizer", self._follow_optimizers)
        self._trial.when_imported("torch.nn.utils.clip_grad", self._follow_clipping)
        self._trial.when_imported("torch", self._follow_backward)

    def _follow_backward(self, torch: Any) -> None:
        if not torch.cuda.is_available():
            self.refused = "float16 needs a GPU; autocast in bfloat16 runs here"
            return
        self._scaler = torch.amp.GradScaler("cuda")
        backward = torch.Tensor.backward

        @functools.wraps(backward)
        def scaled(this: Any, *arguments: Any, **named: Any) -> Any:
            self._trial.loss_scale = self._scaler.get_scale()
            return backward(self._scaler.scale(this), *arguments, **named)

        self._trial.replaced.attribute(torch.Tensor, "backward", scaled)

    def _follow_optimizers(self, optimizers: Any) -> None:
        def before(optimizer: Any, arguments: Any, named: Any) -> None:
            if self._scaler is None or self.refused:
                return
            self._scaler.unscale_(optimizer)
            found = self._scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
            if any(float(one) for one in found.values()):
                optimizer.zero_grad(set_to_none=True)

        def after(optimizer: Any, arguments: Any, named: Any) -> None:
            if self._scaler is not None and not self.refused:
                self._scaler.update()

        optimizers.register_optimizer_step_pre_hook(before)
        optimizers.register_optimizer_step_post_hook(after)

    def _follow_clipping(self, module: Any) -> None:
        original = module.clip_grad_norm_

        @functools.wraps(original)
        def clip(*arguments: Any, **named: Any) -> Any:
            self.refused = "the program clips gradients, which would be scaled ones"
            return original(*arguments, **named)

        self._trial.replaced.everywhere("clip_grad_norm_", original, clip)
