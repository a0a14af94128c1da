"""Sizes at which a known operator is slow, where another size or form has the same result: a transform of a prime
length, one query on a whole cache, a window that may be two."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.analysis.case import Case
from leadline.analysis.rules.by_shape import shapes_of, tensor_shapes
from leadline.analysis.rules.place.at import At
from leadline.analysis.rules.place.fact import Fact
from leadline.schema import FrameKind

_PRIME = 50
"""From such a factor on libraries for transforms leave their short way: a transform then takes 2 to 5 times as long."""
_SHORT = (2, 3, 5, 7)
_CACHE = 512
"""Keys for one query."""
_WINDOW = 7
"""Of a window of n x n, two of n need 2 n of n squared products."""
_TELLS = 0.75


def by_size(case: Case, at: At) -> Iterator[Fact]:
    """Nothing where shapes were not recorded."""
    if at.operator:
        yield from _of_transforms(case, at)
        for row in reversed(case.tree.path_rows(at.row)):
            name = case.name(row).rpartition("::")[2]
            if "scaled_dot_product" in name:
                yield from _one_query(case, row)
                return
            if name in ("conv2d", "convolution"):
                yield from _channel_by_channel(case, row)
                return


def _of_transforms(case: Case, at: At) -> Iterator[Fact]:
    """By the transforms of the line whose input is as long as the result."""
    if not case.name(at.row).rpartition("::")[2].startswith("_fft_"):
        return
    for row in at.rows.tolist():
        name = case.name(row).rpartition("::")[2]
        shapes = shapes_of(case, row) if name in ("_fft_r2c", "_fft_c2c") else []
        length = shapes[0][-1] if shapes and shapes[0] else 0
        factor = largest_factor(length)
        if factor >= _PRIME:
            what = "a prime" if factor == length else f"with the prime factor {factor:,}"
            yield Fact(
                "shape",
                f"transforms {length:,} values, {what}",
                _TELLS,
                f"Transform {next_short(length):,} values (pad with zeros), or another length without large prime "
                "factors: transforms are fast where all are small (scipy.fft.next_fast_len finds one).",
            )
            return


def _one_query(case: Case, row: int) -> Iterator[Fact]:
    """Of attention with a mask: query, key, value, mask."""
    shapes = tensor_shapes(case, row)
    if len(shapes) < 4 or len(shapes[0]) < 2 or len(shapes[1]) < 2:
        return
    queries, keys = shapes[0][-2], shapes[1][-2]
    if queries == 1 and keys >= _CACHE and shapes[3][-1] == keys:
        yield Fact(
            "shape",
            f"reads {keys:,} keys and values for one query, with a mask",
            _TELLS,
            "If the mask hides what a cache does not hold yet, give attention the filled part only: "
            "keys[:, :, :length], values[:, :, :length].",
        )


def _channel_by_channel(case: Case, row: int) -> Iterator[Fact]:
    """Of a window that no module has learnt."""
    shapes = tensor_shapes(case, row)
    if len(shapes) < 2 or len(shapes[0]) != 4 or len(shapes[1]) != 4:
        return
    channels, (made, each, height, width) = shapes[0][1], shapes[1]
    module = int(case.analysis.scopes.module[row])
    learnt = module >= 0 and case.tree.kinds[module] == int(FrameKind.MODULE) and "Conv" in case.name(module)
    if made == channels and each == 1 and min(height, width) >= _WINDOW and not learnt:
        yield Fact(
            "shape",
            f"convolves each channel with a window of {height} x {width}",
            _TELLS,
            f"If the window is a product of two vectors, as a Gaussian or a box is, convolve with {height} x 1 and "
            f"then with 1 x {width}: {height + width} of {height * width} products.",
        )


def largest_factor(number: int) -> int:
    """The largest prime factor; 1 of 1 and less."""
    found, rest, factor = 1, number, 2
    while factor * factor <= rest:
        while rest % factor == 0:
            found, rest = factor, rest // factor
        factor += 1
    return max(found, rest, 1)


def next_short(number: int) -> int:
    """The next number that has no other prime factors than 2, 3, 5 and 7."""
    while True:
        rest = number
        for factor in _SHORT:
            while rest > 1 and rest % factor == 0:
                rest //= factor
        if rest <= 1:
            return number
        number += 1
