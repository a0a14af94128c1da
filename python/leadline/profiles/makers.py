"""Words that makers of devices have for the same things: sentences are written in NVIDIA's and turned into AMD's. The
page does the same with the same table, in ui/model/makers.ts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from leadline.profiles.records import Device
from leadline.schema import MAKERS_WORDS

_AMDS = tuple((re.compile(pattern), word) for pattern, word in MAKERS_WORDS["amd"])


def is_amd(devices: Iterable[Device]) -> bool:
    """Whether the devices are AMD's; imported traces tell no more than the name."""
    return any(one.detail.get("vendor") == "AMD" or one.name.startswith("AMD ") for one in devices)


def in_amds_words(text: str) -> str:
    """The same sentence as AMD's documents would put it."""
    for pattern, word in _AMDS:
        text = pattern.sub(word, text)
    return text


def in_makers_words(devices: Iterable[Device], text: str) -> str:
    """The sentence in the words of the devices' maker."""
    return in_amds_words(text) if is_amd(devices) else text
