"""Accelerators that TOML files describe (`--accelerator`). The work is that of native/providers/accelerator.

Promise: a run whose accelerator was never seen says why: a library that was not loaded, a function that it does not
have, a process that was not started by `leadline run`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native
from leadline.capture.providers.accelerator.files import exported

_NAME = "accelerator"


class AcceleratorProvider:
    """One per session; does nothing where no accelerator is described."""

    name = _NAME

    def __init__(self, native: Native, options: Options) -> None:
        self._native = native
        self._descriptions = options.accelerators
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": "No accelerator was described."}
        self._running = False

    def start(self) -> None:
        """Catch calls from now on."""
        if not self._descriptions:
            return
        answer = self._native.provider_start(_NAME, {"description": "".join(self._descriptions)})
        self._status = {"version": "", **answer}
        self._running = bool(answer.get("ok"))
        if not self._running:
            self._native.count_loss("provider_unavailable", 1, str(answer.get("message", "")))

    def stop(self) -> None:
        """Let go; what has ended is folded first."""
        if not self._running:
            return
        self._running = False
        answer = self._native.provider_stop(_NAME)
        sentences = _sentences(answer)
        for sentence in sentences:
            self._native.count_loss("provider_unavailable", 1, sentence)
        self._status = {"version": "", **answer, "message": " ".join(sentences)}

    def forked(self) -> None:
        """The thread that takes ended work in stays with the parent."""
        self.start()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; with counts of `calls` and `records`."""
        if self._running:
            self._status = {"version": "", **self._native.provider_status(_NAME)}
        return dict(self._status)


def _sentences(answer: dict[str, Any]) -> list[str]:
    """What kept calls from being seen. That no library was loaded is for whoever knows all processes to say."""
    found: list[str] = []
    if not answer.get("libraries"):
        return found
    for line in str(answer.get("missing", "")).splitlines():
        library, _, function = line.partition("\t")
        import difflib  # for the one sentence

        near = difflib.get_close_matches(function, exported(Path(library)), n=1, cutoff=0.5)
        found.append(
            f"{library} has no function {function}"
            + (f"; the nearest name is {near[0]}." if near else "; see `nm -D` for what it has.")
        )
    if not answer.get("audited") and not answer.get("calls"):
        found.append(
            "The dynamic loader did not report calls, so only callers that were bound before are recorded; start "
            "the program with `leadline run --accelerator`."
        )
    if answer.get("unreadable"):
        found.append(
            f"{answer['unreadable']} times an argument could not be read; a type in the accelerator's file may be "
            "wrong."
        )
    return found


def create(native: Native, options: Options, changed: Callable[[], None]) -> AcceleratorProvider:
    """See `leadline.capture.providers`."""
    return AcceleratorProvider(native, options)
