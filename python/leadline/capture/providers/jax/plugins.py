"""Plug-ins of PJRT, through which JAX drives devices: their tables of functions, handed to the native provider `pjrt`.

JAX tells of each plug-in when it has found them, before a client is made, and of those it knows already at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

from leadline.capture.providers.jax import places as jax_places

_NAME = "pjrt"
_TOLD = (
    *("calls", "failed", "compiled", "executed", "copied_bytes", "buffers_freed", "made_bytes"),
    *("ended", "ended_failed", "not_awaited"),
)


class PluginNative(Protocol):
    """What is needed of the native module here."""

    def provider_start(self, name: str, options: dict[str, Any]) -> dict[str, Any]: ...
    def provider_stop(self, name: str) -> dict[str, Any]: ...


class Plugins:
    """Those that JAX has told of. `measured_by`: the vendor provider that counts copies itself, or empty."""

    def __init__(self, native: PluginNative, measured_by: Callable[[], str], loss: Callable[[str], None]) -> None:
        self._native = native
        self._measured_by = measured_by
        self._loss = loss
        self._known: set[int] = set()
        self._counts_bytes = True

    def install(self) -> None:
        """Ask to be told of every plug-in."""
        register = jax_places.member("jax._src.xla_bridge.register_plugin_callbacks")
        if register is not None:
            register(self._loaded)

    def poll(self) -> None:
        """A vendor's provider may begin after the plug-in was loaded: from then on copies are its to count."""
        if self._known and self._counts_bytes and self._measured_by():
            self._counts_bytes = False
            self._native.provider_start(_NAME, {"bytes": False})

    def uninstall(self) -> dict[str, int]:
        """Ask no more, and give tables back; what was called, empty where there is no plug-in."""
        waiting = jax_places.member("jax._src.xla_bridge._plugin_callbacks")
        if isinstance(waiting, list) and self._loaded in waiting:
            waiting.remove(self._loaded)
        if not self._known:
            return {}
        answer = self._native.provider_stop(_NAME)
        return {"plugins": len(self._known), **{key: int(answer[key]) for key in _TOLD if key in answer}}

    def _loaded(self, c_api: Any) -> None:
        """Called by JAX, which goes on to use the plug-in, so nothing may escape from here."""
        try:
            table = _address(c_api)
            self._counts_bytes = not self._measured_by()
            answer = self._native.provider_start(_NAME, {"table": table, "bytes": self._counts_bytes})
            if answer.get("message"):
                self._loss(str(answer["message"]))
            else:
                self._known.add(table)
        except Exception as error:
            self._loss(f"The calls of a plug-in of PJRT are not followed ({error!r}).")


def _address(capsule: Any) -> int:
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)) or 0)
