"""The last minute of an engine: what `top` and Prometheus show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._histogram import Histogram, merged

SECONDS = 60
_SLOT_S = 5
_NAMES = ("ttft", "tpot", "e2e")


class Recent:
    """Slots of five seconds; those older than a minute are forgotten."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[str, Histogram]] = {}
        self._tokens: dict[int, int] = {}
        self._first = -1

    def add(self, now_ns: int, values: Mapping[str, int], tokens: int) -> None:
        """A request has ended."""
        slot = self._slot(now_ns)
        for name in _NAMES:
            if name in values:
                slot[name].add(values[name])

    def tokens(self, now_ns: int, count: int) -> None:
        """So many tokens were made."""
        self._slot(now_ns)
        number = now_ns // (_SLOT_S * 1_000_000_000)
        self._tokens[number] = self._tokens.get(number, 0) + count

    def _slot(self, now_ns: int) -> dict[str, Histogram]:
        number = now_ns // (_SLOT_S * 1_000_000_000)
        if self._first < 0:
            self._first = number
        slot = self._slots.get(number)
        if slot is None:
            slot = {name: Histogram() for name in _NAMES}
            self._slots = {old: one for old, one in self._slots.items() if old > number - SECONDS // _SLOT_S}
            self._tokens = {old: one for old, one in self._tokens.items() if old > number - SECONDS // _SLOT_S}
            self._slots[number] = slot
        return slot

    def facts(self, now_ns: int) -> dict[str, Any]:
        """Of the last minute: tokens a second, and p50 and p99 in ns; empty where nothing ended."""
        number = now_ns // (_SLOT_S * 1_000_000_000)
        oldest = number - SECONDS // _SLOT_S
        slots = [one for old, one in list(self._slots.items()) if old > oldest]
        tokens = sum(one for old, one in list(self._tokens.items()) if old > oldest)
        began = max(self._first, oldest + 1) * _SLOT_S * 1_000_000_000
        made: dict[str, Any] = {"tokens_per_s": tokens / max((now_ns - began) / 1e9, 1.0), "tokens": tokens}
        for name in _NAMES:
            if (whole := merged(slot[name] for slot in slots)).count:
                made[name] = {"count": whole.count, "p50": int(whole.quantile(0.5)), "p99": int(whole.quantile(0.99))}
        return made
