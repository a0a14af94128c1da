"""Every framework and vendor that this process can be asked about: one module each, found by the list below."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from leadline.capture.config import Options
from leadline.capture.native import Native

PROVIDERS: tuple[str, ...] = (
    "leadline.capture.providers.torch",
    "leadline.capture.providers.nvidia",
    "leadline.capture.providers.amd",
    "leadline.capture.providers.accelerator",
    "leadline.capture.providers.inductor",
    "leadline.capture.providers.cpu",
    "leadline.capture.providers.jax",
    "leadline.capture.providers.tensorflow",
    "leadline.capture.providers.tools",
    "leadline.capture.providers.garbage",
)
"""Modules with `create(native, options, changed) -> Provider`, in the order they start."""


class Provider(Protocol):
    """One source of events."""

    name: str
    """Key in `meta.json`'s `available`."""

    def start(self) -> None:
        """Attach now, or arrange to attach when the framework appears; may raise, and is then counted as a loss."""

    def stop(self) -> None:
        """Take away every hook."""

    def forked(self) -> None:
        """In the child of a fork, where the session goes on: let go of what does not survive."""

    def status(self) -> dict[str, Any]:
        """`ok` (True, False, None while the framework is not there), `version`, `message` (one sentence or empty)."""


@runtime_checkable
class CanRest(Protocol):
    """A provider that a cost budget may let rest."""

    @property
    def rests(self) -> str:
        """What rests, a word of `budget.ORDER`; empty where nothing of it was asked for."""

    def rest(self) -> None:
        """Cost nothing until `go_on`."""

    def go_on(self) -> None:
        """Measure again."""


def create_providers(native: Native, options: Options, changed: Callable[[], None]) -> tuple[Provider, ...]:
    """One of each; `changed` is to be called when a status has changed after `start`."""
    return tuple(importlib.import_module(name).create(native, options, changed) for name in PROVIDERS)
