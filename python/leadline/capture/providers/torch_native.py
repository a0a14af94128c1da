"""The part of the native module that is about torch alone."""

from __future__ import annotations

from typing import Any, Protocol

from leadline.capture.native import Native


class TorchNative(Native, Protocol):
    """What the torch provider calls beside what every provider does."""

    def attach_torch(self, info: dict[str, Any]) -> dict[str, Any]: ...
    def detach_torch(self) -> None: ...
    def module_register(self, parent_id: int, child_id: int, name: str) -> None: ...
    def module_name(self, module_id: int) -> str: ...
    def module_forget(self, module_id: int) -> None: ...
