"""What a run computed: the values given to `backward()`, the parameters behind the last step, the coarsest type used.

Values are copied on their device and read behind the last step: no step waits for a device because of them.
"""

from __future__ import annotations

import functools
import math
from array import array
from typing import TYPE_CHECKING, Any

from leadline.remedies.compared import living_arrays, of_arrays, of_tensors, sampled_arrays, sampled_tensors

if TYPE_CHECKING:
    from leadline.remedies.trial import Trial

_COARSE = ("bfloat16", "float16")


class Values:
    """Of one process."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._given: list[tuple[int, Any]] = []
        self._returned: list[tuple[int, Any]] = []
        self._outputs: Any = None
        self._begin: array[float] | None = None
        self.precision = "float32"
        self.has_backward = False
        """The program trains."""

    def install(self) -> None:
        self._trial.when_imported("torch.autograd", self._follow)
        self._trial.when_imported("torch.amp.autocast_mode", self._follow_autocast)

    def _follow(self, autograd: Any) -> None:
        original = autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
            self._note(tensors)
            return original(tensors, *arguments, **named)

        self._trial.replaced.everywhere("backward", original, backward)  # Tensor.backward looks it up here

    def _follow_autocast(self, module: Any) -> None:
        original = module.autocast.__enter__

        @functools.wraps(original)
        def enter(this: Any) -> Any:
            kind = str(getattr(this, "fast_dtype", "")).rpartition(".")[2]
            if getattr(this, "_enabled", False) and kind in _COARSE:
                self.precision = kind
            return original(this)

        self._trial.replaced.attribute(module.autocast, "__enter__", enter)

    def _note(self, tensors: Any) -> None:
        self.has_backward = True
        try:
            for one in tensors if isinstance(tensors, list | tuple) else (tensors,):
                value = one.detach()
                value = value.clone() if value.numel() == 1 else value.double().sum()
                self._given.append((self._trial.step, value / self._trial.loss_scale))
        except Exception as error:
            self._trial.fault(error)

    def program_returned(self, output: Any, donates: bool) -> None:
        """JAX: single numbers among what the step's program returns are its values; all of it the parameters.
        `donates`: the next call may take their memory."""
        import jax

        if self._outputs is None:
            self._begin = sampled_arrays(output)
        self._outputs = output
        for leaf in jax.tree_util.tree_leaves(output):
            if getattr(leaf, "shape", None) == () and str(getattr(leaf, "dtype", "")).startswith(("float", "bfloat")):
                self._given.append((self._trial.step, leaf.copy() if donates else leaf))

    def module_returned(self, output: Any) -> None:
        """Of a program that only infers: the sum of what the outermost module returns."""
        try:
            found = _first_tensor(output)
            if found is not None:
                self._returned.append((self._trial.step, found.detach().double().sum()))
        except Exception as error:
            self._trial.fault(error)

    def begin(self) -> None:
        """Before the first optimizer step: where the parameters are."""
        self._begin = sampled_tensors(_parameters(self._trial.optimizers))

    def step_ended(self) -> None:
        """The first: of a program of JAX without a compiled step, what is alive."""
        if self._begin is None and self._outputs is None and (alive := living_arrays()) is not None:
            self._begin = sampled_arrays(alive)

    def result(self) -> dict[str, Any]:
        """Behind the last step."""
        values = [[step, _finite(float(value))] for step, value in self._given or self._returned if not _is_gone(value)]
        found: dict[str, Any] = {"values": values, "precision": self.precision}
        parameters = _parameters(self._trial.optimizers)
        end = None
        if parameters:
            if any(_kind(one) in _COARSE for one in parameters):
                found["precision"] = _kind(parameters[0])
            found |= of_tensors(parameters, self._trial.plan.most_bytes)
            end = sampled_tensors(parameters)
        elif (outputs := living_arrays() if self._outputs is None else self._outputs) is not None:
            found |= of_arrays(outputs, self._trial.plan.most_bytes)
            end = sampled_arrays(outputs)
        if self._begin is not None and end is not None and len(self._begin) == len(end):
            self._trial.write_numbers("begin", self._begin)
            self._trial.write_numbers("end", end)
        return found


def _kind(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _is_gone(value: Any) -> bool:
    """An array of JAX that the program has given to its next step."""
    deleted = getattr(value, "is_deleted", None)
    return bool(deleted is not None and deleted())


def _first_tensor(output: Any) -> Any:
    if hasattr(output, "detach") and output.is_floating_point():
        return output
    several = output.values() if hasattr(output, "values") else output if isinstance(output, list | tuple) else ()
    return next((one for one in map(_first_tensor, several) if one is not None), None)


def _parameters(optimizers: list[Any]) -> list[Any]:
    found: dict[int, Any] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for one in group["params"]:
                found.setdefault(id(one), one)
    local = [one.to_local() if hasattr(one, "to_local") else one for one in found.values()]
    return [one.detach() for one in local if one.is_floating_point()]
