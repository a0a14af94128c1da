"""Matrix instructions (MFMA) of AMD's devices: what rate each shape reaches, from `tables/mfma.json`, and which one a
kernel of Tensile (rocBLAS, hipBLASLt) or MIOpen uses, which its name says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from leadline._dataclass import dataclass

_SIMDS = 4
"""Of a compute unit, each with a matrix unit."""
_NAMED = re.compile(r"_MI(\d+)x(\d+)x(\d+)(?:x(\d+))?_")
_TYPES = re.compile(r"^Cijk_[A-Z][a-z]+_[A-Z][a-z]+_(F8|B8|I8|[A-Z])[A-Z0-9]*_")
_OF_MIOPEN = re.compile(r"^igemm_[a-z]+_gtcx\w*?_(fp16|bf16|fp32)_\w*?_wt(\d+)x(\d+)x(\d+)_")
_PRECISIONS = {"H": "fp16", "B": "bf16", "S": "fp32", "D": "fp64", "F8": "fp8", "B8": "fp8"}
_MODELS = (("gfx942", r"MI3(00|25)"), ("gfx950", r"MI35\d"), ("gfx90a", r"MI2\d\d"), ("gfx908", r"MI100"))


@dataclass(frozen=True)
class Mfma:
    """One instruction of a wavefront: `blocks` products of m x k by k x n numbers, in so many cycles of a SIMD."""

    precision: str
    m: int
    n: int
    k: int
    blocks: int
    cycles: int

    @property
    def flops_per_cycle(self) -> float:
        """Of a compute unit, with all of its matrix units at work."""
        return 2 * self.m * self.n * self.k * self.blocks * _SIMDS / self.cycles

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}" + (f", {self.blocks} blocks" if self.blocks > 1 else "")


def architecture_of(device: str, told: str = "") -> str:
    """`gfx942`, by what the device's record says (`gfx942:sramecc+`), else by its name; empty where neither tells."""
    known = re.match(r"gfx[0-9a-f]+", told)
    if known:
        return known[0]
    return next((chip for chip, pattern in _MODELS if re.search(pattern, device)), "")


def instructions(architecture: str, precision: str) -> tuple[Mfma, ...]:
    """Those that multiply numbers of that precision; none for a chip that is not in the table."""
    return tuple(one for one in _table().get(architecture, ()) if one.precision == precision)


def best(architecture: str, precision: str) -> Mfma | None:
    """One of those that reach the chip's peak."""
    return max(instructions(architecture, precision), key=lambda one: one.flops_per_cycle, default=None)


def of_kernel(architecture: str, kernel: str) -> Mfma | None:
    """What a kernel of Tensile or of MIOpen's implicit products multiplies with; None where the name says no
    instruction, or the table has it not. Newer names of Tensile leave k out (`MI16x16x1` is m, n and blocks): the
    fastest that it can be. MIOpen says the tile of all blocks (`wt64x16x4`: four of 16x16x4)."""
    if tile := _OF_MIOPEN.match(kernel):
        rows, columns, k = int(tile[2]), int(tile[3]), int(tile[4])
        fitting = [
            one
            for one in instructions(architecture, tile[1])
            if one.k == k and one.m * one.n * one.blocks == rows * columns
        ]
    elif (shape := _NAMED.search(kernel)) and (types := _TYPES.search(kernel)):
        m, n = int(shape[1]), int(shape[2])
        k, blocks = (int(shape[3]), int(shape[4])) if shape[4] else (0, int(shape[3]))
        known = instructions(architecture, _PRECISIONS.get(types[1], ""))
        fitting = [one for one in known if (one.m, one.n, one.blocks) == (m, n, blocks) and k in (0, one.k)]
    else:
        return None
    return max(fitting, key=lambda one: one.flops_per_cycle, default=None)


@lru_cache(maxsize=1)
def _table() -> Mapping[str, tuple[Mfma, ...]]:
    text = Path(__file__).with_name("tables").joinpath("mfma.json").read_text(encoding="utf-8")
    chips = json.loads(text)["chips"]
    return {chip["architecture"]: tuple(Mfma(*row) for row in chip["instructions"]) for chip in chips}
