"""What a run computed: the values given to `backward()`, the parameters behind the last step, the coarsest type used.

Values are copied on their device and read behind the last step: no step waits for a device because of them.
"""

from __future__ import annotations

import functools
import hashlib
import math
from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.remedies.trial import Trial

_MOST_NUMBERS = 1 << 18
"""Of all parameters, how many are kept to tell how far apart two runs are."""
_MOST_HASHED = 4 << 30
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

    def program_returned(self, output: Any) -> None:
        """JAX: single numbers among what the step's program returns are its values; all of it the parameters."""
        import jax

        self._outputs = output
        for leaf in jax.tree_util.tree_leaves(output):
            if getattr(leaf, "shape", None) == () and str(getattr(leaf, "dtype", "")).startswith(("float", "bfloat")):
                self._given.append((self._trial.step, leaf))

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
        self._begin = _sampled(_parameters(self._trial.optimizers))

    def result(self) -> dict[str, Any]:
        """Behind the last step."""
        values = [[step, _finite(float(value))] for step, value in self._given or self._returned if not _is_gone(value)]
        found: dict[str, Any] = {"values": values, "precision": self.precision}
        parameters = _parameters(self._trial.optimizers)
        if parameters:
            if any(str(one.dtype).rpartition(".")[2] in _COARSE for one in parameters):
                found["precision"] = str(parameters[0].dtype).rpartition(".")[2]
            found["parameters"] = sum(one.numel() for one in parameters)
            found["digest"] = _digest(parameters)
            end = _sampled(parameters)
            if self._begin is not None and end is not None and len(self._begin) == len(end):
                self._trial.write_numbers("begin", self._begin)
                self._trial.write_numbers("end", end)
        elif self._outputs is not None:
            found |= _of_arrays(self._outputs)
        return found


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


def _sampled(parameters: list[Any]) -> array[float] | None:
    """Numbers at equal distances, of every parameter some."""
    total = sum(one.numel() for one in parameters)
    if not total:
        return None
    every = max(total // _MOST_NUMBERS, 1)
    found = array("d")
    for one in parameters:
        found.extend(one.flatten()[:: min(every, max(one.numel() // 8, 1))].double().cpu().tolist())
    return found


def _digest(parameters: list[Any]) -> str:
    """Of all bits; empty where there are too many or numpy is missing."""
    import torch

    if sum(one.numel() * one.element_size() for one in parameters) > _MOST_HASHED:
        return ""
    found = hashlib.blake2b(digest_size=16)
    try:
        for one in parameters:
            found.update(one.cpu().contiguous().view(-1).view(torch.uint8).numpy())
    except (RuntimeError, ImportError):
        return ""
    return found.hexdigest()


def _of_arrays(output: Any) -> dict[str, Any]:
    """Of JAX: all arrays that the last step returned."""
    import jax
    import numpy

    found, count = hashlib.blake2b(digest_size=16), 0
    for leaf in jax.tree_util.tree_leaves(output):
        value = numpy.ascontiguousarray(leaf)
        found.update(value.tobytes())
        count += value.size
    return {"digest": found.hexdigest(), "parameters": count}
