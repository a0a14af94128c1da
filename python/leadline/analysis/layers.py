"""Names of modules that differ only in layer numbers."""

from __future__ import annotations

import re

_LAYER_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def merged_layers(module: str) -> str:
    """`transformer.h.3.attn` as `transformer.h.*.attn`."""
    return _LAYER_NUMBER.sub("*", module)
