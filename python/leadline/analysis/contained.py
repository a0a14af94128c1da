"""Questions whose failure costs one fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

from leadline.profiles.archive import printable

T = TypeVar("T")


class CannotTell(Exception):
    """A rule's question makes no sense for this profile; the text completes "not applicable: ..."."""


class Contained:
    """What a case has so that a fault of ours, or odd values in a file that somebody sent, cost one fact."""

    @cached_property
    def failed(self) -> list[str]:
        """The errors, one sentence each."""
        return []

    def optional(self, ask: Callable[[], Iterable[T]]) -> list[T]:
        """What `ask` returns, or nothing where it raises. A question that makes no sense here is no error."""
        try:
            return list(ask())
        except CannotTell:
            return []
        except Exception as error:
            self.failed.append(printable(f"{type(error).__name__}: {error}", 200))
            return []
