"""transformers' `generate`: prefill, decode and sampling as phases, each call's sequences as requests.

Borders: `_prefill`, `_has_unfinished_sequences` (the head of the loop) and the call of `LogitsProcessorList`, with
which sampling begins. A call's sequences end together, and `output_tokens` is what the longest of them has. Nothing of
a tensor is read but its shape.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native
from leadline.capture.providers.engines.account import Account
from leadline.capture.providers.engines.continuous import ContinuousFollower
from leadline.capture.providers.engines.follow import Followed
from leadline.capture.providers.engines.request import Request

PREFILL, DECODE, SAMPLING = "prefill", "decode", "sampling"
_MOST_ROWS = 256


class _Call:
    """One call of `generate`, on its thread."""

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.step_ns = 0
        self.names: list[str] = []
        self.sequences = self.prompt_tokens = self.tokens = 0
        self.phase = 0
        self.kind = PREFILL


class GenerateProvider:
    """One per session."""

    name = "transformers"

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self._native = native
        self._changed = changed
        self._every_ns = int(max(options.flush_interval_s, 1.0) * 1e9)
        self._written_ns = 0
        self._followed = Followed(native, "transformers", changed)
        self._continuous = ContinuousFollower(native, self._followed, self._every_ns, changed)
        self._account: Account | None = None
        self._local = threading.local()
        self._lock = threading.Lock()
        self._calls = 0

    def start(self) -> None:
        """See `Provider.start`."""
        self._followed.release = str(getattr(sys.modules.get("transformers"), "__version__", "") or "")
        self._followed.modules(
            [
                ("transformers.generation.utils", self._follow),
                ("transformers.generation.logits_process", self._follow_sampling),
                *self._continuous.modules(),
            ]
        )

    def stop(self) -> None:
        """See `Provider.stop`."""
        self._followed.undo()

    def forked(self) -> None:
        """The parent's requests are the parent's."""
        self._account = None
        self._lock = threading.Lock()
        self._local = threading.local()
        self._continuous.forget()

    def status(self) -> dict[str, Any]:
        """See `Provider.status`."""
        return self._followed.status()

    def engines(self) -> list[dict[str, Any]]:
        """For the process's record."""
        own = [{**self._account.facts(), "called": 1}] if self._account is not None else []  # by the program itself
        return own + self._continuous.facts()

    def _follow(self, module: ModuleType) -> None:
        mixin = getattr(module, "GenerationMixin", None)
        self._followed.method(mixin, "generate", self._generate, ())
        self._followed.method(mixin, "_prefill", self._prefill, ("input_ids",))
        self._followed.method(mixin, "_has_unfinished_sequences", self._head, ())

    def _follow_sampling(self, module: ModuleType) -> None:
        self._followed.method(getattr(module, "LogitsProcessorList", None), "__call__", self._sampling, ())

    def _open(self) -> list[_Call]:
        calls: list[_Call] | None = getattr(self._local, "calls", None)
        if calls is None:
            calls = self._local.calls = []
        return calls

    def _generate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def generate(model: Any, *arguments: Any, **named: Any) -> Any:
            calls = self._open()
            calls.append(_Call(time.monotonic_ns()))
            reason = "error"
            try:
                made = original(model, *arguments, **named)
                reason = "stop"
                return made
            finally:
                call = calls.pop()
                try:
                    self._ends(call, reason)
                except Exception as error:
                    self._followed.lose("the end of a call", error)

        return generate

    def _ends(self, call: _Call, reason: str) -> None:
        self._close(call)
        now_ns = time.monotonic_ns()
        account = self._account
        if account is None:
            return
        with self._lock:
            for name in call.names:
                account.end(name, reason, call.tokens, 0, now_ns)
        if now_ns - self._written_ns > self._every_ns:
            self._written_ns = now_ns
            self._changed()

    def _prefill(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def prefill(model: Any, input_ids: Any, *arguments: Any, **named: Any) -> Any:
            calls = self._open()
            try:
                if len(calls) == 1:  # a call within a call is an assistant's
                    self._begins(calls[0], input_ids.shape)
            except Exception as error:
                self._followed.lose("a call's prompts", error)
            token = native.phase_begin(PREFILL)
            try:
                return original(model, input_ids, *arguments, **named)
            finally:
                native.phase_end(token)

        return prefill

    def _begins(self, call: _Call, shape: Any) -> None:
        now_ns = time.monotonic_ns()
        call.sequences = int(shape[0])
        call.prompt_tokens = int(shape[1]) if len(shape) > 1 else 0
        call.step_ns = now_ns
        with self._lock:
            if self._account is None:
                self._account = Account("transformers", self._followed.release)
            account = self._account
            self._calls += 1
            account.step_begins(now_ns)
            for row in range(min(call.sequences, _MOST_ROWS)):
                name = f"call {self._calls}, row {row}"
                account.arrived(Request(name, call.began_ns, call.began_ns, call.prompt_tokens))
                account.scheduled(name, now_ns)
                call.names.append(name)

    def _head(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def has_unfinished_sequences(model: Any, *arguments: Any, **named: Any) -> Any:
            calls = self._open()
            call = calls[-1] if calls else None
            try:
                if call is not None and call.phase:
                    self._close(call)
                    if len(calls) == 1 and call.step_ns:
                        self._stepped(call)
            except Exception as error:
                self._followed.lose("a step", error)
            goes_on = original(model, *arguments, **named)
            if call is not None and goes_on and call.tokens:
                call.phase = self._native.phase_begin(DECODE)
            return goes_on

        return has_unfinished_sequences

    def _stepped(self, call: _Call) -> None:
        """A token of every sequence is there."""
        now_ns = time.monotonic_ns()
        account = self._account
        if account is None:
            return
        first = call.kind == PREFILL
        with self._lock:
            account.step(
                call.kind,
                now_ns - call.step_ns,
                now_ns,
                sequences=call.sequences,
                prefill_tokens=call.sequences * call.prompt_tokens if first else 0,
                decode_tokens=0 if first else call.sequences,
                prefills=[(name, call.prompt_tokens) for name in call.names] if first else (),
                running=call.sequences,
                waiting=0,
            )
            account.recent.tokens(now_ns, call.sequences)
            if first:
                for name in call.names:
                    account.first_token(name, now_ns)
        call.tokens += 1
        call.step_ns = now_ns
        call.kind = DECODE

    def _sampling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def sample(processors: Any, *arguments: Any, **named: Any) -> Any:
            calls = self._open()
            if calls:
                self._close(calls[-1])
                calls[-1].phase = self._native.phase_begin(SAMPLING)
            return original(processors, *arguments, **named)

        return sample

    def _close(self, call: _Call) -> None:
        if call.phase:
            self._native.phase_end(call.phase)
            call.phase = 0


def create(native: Native, options: Options, changed: Callable[[], None]) -> GenerateProvider:
    """See `leadline.capture.providers`."""
    return GenerateProvider(native, options, changed)
