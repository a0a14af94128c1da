"""NumPy 2.5 refuses a negative int of Python beside an unsigned array in `where`; the NumPy of these tests makes a wider
array of it. A pytest plugin that refuses it as well, since no NumPy of that release is to be had for CPython 3.11."""

from __future__ import annotations

from typing import Any

import numpy as np

_where: Any = np.where


def where(*given: Any) -> Any:
    """`numpy.where`. Raises OverflowError as NumPy 2.5 does."""
    for value, beside in ((given[1], given[2]), (given[2], given[1])) if len(given) == 3 else ():
        if type(value) is int and value < 0 and np.asarray(beside).dtype.kind == "u":
            raise OverflowError(f"Python integer {value} out of bounds for {np.asarray(beside).dtype}")
    return _where(*given)


def pytest_configure() -> None:
    np.where = where
