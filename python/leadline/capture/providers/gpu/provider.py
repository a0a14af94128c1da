"""What providers of a vendor's GPUs share: the native side answers, and its answer becomes the status and the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from leadline._package import CODE_FOLDER
from leadline.capture.config import SESSION_VARIABLE, Options
from leadline.capture.native import Native

RECORDING_VARIABLE = "LEADLINE_GPU_RECORDING"
"""Environment: a file to record GPU calls and records into, for bug reports and tests."""
CODE_BYTES_VARIABLE = "LEADLINE_CODE_BYTES"
"""Environment: the most machine code that is kept while a program runs."""
CODE_BYTES = 256 << 20


def sampling_options(options: Options) -> dict[str, Any]:
    """Of sampling instructions. Code is kept in the session's folder, where the files of all its processes come
    together."""
    folder = os.environ.get(SESSION_VARIABLE, "")
    return {
        "instructions": options.instructions,
        "instruction_budget": options.instruction_budget / 100,
        "code_folder": f"{folder}/{CODE_FOLDER}" if folder and not options.no_code else "",
        "code_bytes": number(CODE_BYTES_VARIABLE, CODE_BYTES),
    }


def counting_options(options: Options) -> dict[str, Any]:
    """Of reading hardware counters."""
    return {"gpu_metrics": list(options.gpu_metrics), "instruction_budget": options.instruction_budget / 100}


def number(variable: str, otherwise: int) -> int:
    """What an environment variable says, where it is a number."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else otherwise


class GpuProvider:
    """Follows the vendor's library from its start in the program to the end of the session."""

    VERSION: ClassVar[str]
    """The key of the library's version in what the native side says of itself."""

    def __init__(self, native: Native, changed: Callable[[], None], unused: str) -> None:
        self._count_loss = native.count_loss
        self._changed = changed
        self._status: dict[str, Any] = {"ok": None, "version": "", "message": unused}
        self._awaiting = False
        """The native side begins by itself when the vendor's library starts."""
        self._attached = False
        self._stopped = False
        self._forked_after = False
        """In a child whose parent had started the library."""

    def _details(self) -> Mapping[str, Any]:
        """What the native side says of itself."""
        raise NotImplementedError

    def _detach(self) -> Mapping[str, Any]:
        """End measuring; the last records are folded first."""
        raise NotImplementedError

    def _no_gpu(self) -> str:
        """Why no GPU of the vendor's can be used here, though there seems to be one; empty where nothing is amiss."""
        raise NotImplementedError

    def status(self) -> dict[str, Any]:
        """See `Provider.status`; `details` holds what the native side says of itself."""
        self._look()
        return dict(self._status)

    def _answered(self, answer: Mapping[str, Any]) -> None:
        """The native side was asked to begin."""
        self._awaiting = bool(answer["awaiting"])
        if not self._awaiting:
            self._attached = True
            self._note(answer, ok=bool(answer["measuring"]))
            self._changed()

    def _look(self) -> None:
        """Take over what the native side has begun by itself."""
        if not self._awaiting:
            return
        details = self._details()
        if not details["awaiting"]:
            self._awaiting, self._attached = False, True
            self._note(details, ok=bool(details["measuring"]))

    def _let_go(self) -> None:
        """The session ends."""
        self._look()
        if self._attached or self._awaiting:
            ended = self._detach()
            if self._attached or ended["message"]:
                self._note(ended, ok=bool(self._status["ok"]))
            self._attached = self._awaiting = False
        if self._status["ok"] is None and not self._forked_after and (sentence := self._no_gpu()):
            self._status.update(ok=False, message=sentence)
            self._count_loss("provider_unavailable", 1, sentence)

    def _left_behind(self, sentence: str) -> bool:
        """In a forked child: whether the parent had started the vendor's library, which does not survive that. Only a
        child that wants it has lost something, so only then the sentence is a loss."""
        if self._awaiting and self._details()["awaiting"]:
            return False  # the child may start one of its own
        if not (self._attached or self._awaiting):
            return False
        self._attached = self._awaiting = False
        self._forked_after = True
        self._status = {"ok": None, "version": "", "message": sentence}
        cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
        start = getattr(cuda, "_lazy_init", None)
        if start is None:
            return True

        def _lazy_init(*arguments: Any, **named: Any) -> Any:
            cuda._lazy_init = start
            if not self._stopped:
                self._status.update(ok=False)
                self._count_loss("provider_unavailable", 1, sentence)
                self._changed()
            return start(*arguments, **named)  # torch refuses in its own words

        cuda._lazy_init = _lazy_init
        return True

    def _note(self, answer: Mapping[str, Any], *, ok: bool) -> None:
        details = self._details()
        self._status = {
            "ok": ok,
            "version": str(details.get(self.VERSION, "")),
            "message": str(answer["message"]),
            "details": details,
        }
