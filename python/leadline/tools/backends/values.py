"""Whether what an operator wrote is finite, told together with whether what it read was."""

from __future__ import annotations

import math
import sys
from typing import Any

from leadline.tools.backends.declared_operators import OperatorFacts, tensors_in

_NO_VALUES = ("meta",)


def is_eight_bit_float(tensor: Any) -> bool:
    """Whether it is one of torch's float8 types, for most of which it cannot say what is finite."""
    return bool(tensor.is_floating_point()) and tensor.element_size() == 1


def _looked_at(tensor: Any) -> Any:
    """The same values in a type that can be asked whether they are finite."""
    return tensor.float() if is_eight_bit_float(tensor) else tensor


class ValueCheck:
    """Looks at floating-point results. On a GPU every look waits for the device."""

    def look(self, facts: OperatorFacts, args: Any, kwargs: Any, result: Any) -> tuple[Any, int, int, int] | None:
        """Of the first result with values that are not finite: it, how many NaN, how many infinite, and whether they
        arose here: no input was as bad, and no number that the program handed over. In-place arguments are results;
        what they held before is not known any more."""
        torch: Any = sys.modules["torch"]
        for tensor in tensors_in(result):
            if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type in _NO_VALUES:
                continue
            if tensor.numel() == 0 or hasattr(tensor, "fake_mode"):
                continue
            values = _looked_at(tensor)
            if bool(torch.isfinite(values).all()):
                continue
            inputs = [
                one for place, value in enumerate(args) if place not in facts.mutated for one in tensors_in(value)
            ]
            inputs += [
                one for name, value in kwargs.items() if name not in facts.mutated_names for one in tensors_in(value)
            ]
            floating = [
                _looked_at(one) for one in inputs if (one.is_floating_point() or one.is_complex()) and one.numel()
            ]
            nan, inf = int(torch.isnan(values).sum()), int(torch.isinf(values).sum())
            scalars = [one for one in (*args, *kwargs.values()) if isinstance(one, float)]
            if nan:  # also where it comes of infinities, as when all that a softmax sees is masked
                arose = not any(bool(torch.isnan(one).any()) for one in floating)
                arose = arose and not any(math.isnan(one) for one in scalars)
            else:  # an infinity that the program itself hands over, as for a mask, has not arisen
                arose = all(bool(torch.isfinite(one).all()) for one in floating)
                arose = arose and all(math.isfinite(one) for one in scalars)
            return tensor, nan, inf, int(arose)
        return None
