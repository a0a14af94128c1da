"""Exact sums beyond 64 bits as columns of limbs.

A limb holds 32 bits of a value and is added as int64, so 2^31 values can be added before it has to be carried. Adding
limb by limb is associative and commutative whatever the order, which floating point is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Limbs = NDArray[np.int64]
"""Shape (limbs, rows), the lowest limb first."""

_BITS = np.int64(32)
_MASK = np.int64(0xFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
SUM_LIMBS, SQUARE_LIMBS = 2, 4
MOST = 2**56
"""Values of one rank are at most this (2.3 years in ns, 72 PB), so that squares of 2^16 ranks stay within 128 bits."""
_LARGEST_SQUARES = 2.0**112


def sums_of(values: NDArray[np.int64]) -> Limbs:
    """Signed values as two limbs; the high one carries the sign."""
    return np.stack((values & _MASK, values >> _BITS))


def squares_of(values: NDArray[np.int64]) -> Limbs:
    """Squares of values in 0..MOST as four limbs."""
    whole = values.astype(np.uint64)
    low, high = whole & _LOW, whole >> _HALF
    first, cross, last = low * low, np.uint64(2) * low * high, high * high
    second = (first >> _HALF) + (cross & _LOW)
    third = (second >> _HALF) + (cross >> _HALF) + (last & _LOW)
    fourth = (third >> _HALF) + (last >> _HALF)
    return np.stack((first & _LOW, second & _LOW, third & _LOW, fourth)).astype(np.int64)


def limbs_of_floats(values: NDArray[np.float64]) -> Limbs:
    """Whole parts of floating-point sums of squares as four limbs; what is negative, not a number or beyond 2^112
    counts as zero and as 2^112."""
    rest = np.floor(np.clip(np.nan_to_num(values, nan=0.0, posinf=_LARGEST_SQUARES), 0.0, _LARGEST_SQUARES))
    limbs = np.empty((SQUARE_LIMBS, len(values)), np.int64)
    for place in range(SQUARE_LIMBS - 1, -1, -1):
        unit = 2.0 ** (32 * place)  # a power of two: dividing and multiplying by it is exact
        limbs[place] = np.floor(rest / unit).astype(np.int64)
        rest = rest - limbs[place].astype(np.float64) * unit
    return limbs


def carried(limbs: Limbs) -> Limbs:
    """The same values with every limb but the highest in 0..2^32-1: one way to write each value."""
    carried = limbs.copy()
    for place in range(len(limbs) - 1):
        carried[place + 1] += carried[place] >> _BITS
        carried[place] &= _MASK
    return carried


def as_int64(limbs: Limbs) -> NDArray[np.int64]:
    """Two limbs as numbers; what is beyond 64 bits is the largest or smallest there is."""
    low, high = carried(limbs)
    most, least = np.int64(2**31 - 1), np.int64(-(2**31))
    inside = np.clip(high, least, most)
    values: NDArray[np.int64] = (inside << _BITS) | low
    values[high > most] = np.iinfo(np.int64).max
    values[high < least] = np.iinfo(np.int64).min
    return values


def as_float(limbs: Limbs) -> NDArray[np.float64]:
    """As floating point; the same limbs give the same number."""
    one = carried(limbs)
    total = np.zeros(one.shape[1], np.float64)
    for place in range(len(one) - 1, -1, -1):
        total += one[place].astype(np.float64) * 2.0 ** (32 * place)
    return total


def as_pair(limbs: Limbs) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Four limbs as (high, low) 64-bit words."""
    one = carried(limbs).astype(np.uint64)
    return (one[3] << _HALF) | one[2], (one[1] << _HALF) | one[0]


def from_pair(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Limbs:
    """What `as_pair` gave."""
    high, low = high.astype(np.uint64), low.astype(np.uint64)
    return np.stack((low & _LOW, low >> _HALF, high & _LOW, high >> _HALF)).astype(np.int64)


def bins(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of every value in 0..MOST; see the table rank_histogram."""
    exponent = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    exponent -= (values >> np.clip(exponent, 0, 62)) == 0  # rounding up to the next power of two
    inside = 8 * exponent + ((values >> np.maximum(exponent - 3, 0)) & 7)
    return np.where(values >= 8, inside, values)
