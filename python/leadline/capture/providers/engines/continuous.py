"""transformers' continuous batching (`generate_batch`, `ContinuousBatchingManager`, `transformers serve`): its steps as
phases, its batches and requests as numbers.

Borders: the scheduler's `add_waiting_request`, `schedule_batch` and `clear_cancelled_requests`; the processor's
`prepare_next_batch`, `_generation_step` and `update_batch`. A step reaches from the first of these three to the end of
the last; where batches overlap (asynchronous batching), from the end of the step before. All of it is on the manager's
own thread. Sampling is not apart: it is inside what may be compiled or captured as a graph.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.engines.account import Account
from leadline.capture.providers.engines.follow import Followed
from leadline.capture.providers.engines.request import Request

PACKAGE = "transformers.generation.continuous_batching"
SCHEDULING, NO_WORK = "scheduling", "no work"
_SCHEDULERS = ("FIFOScheduler", "PrefillFirstScheduler")
_MOST_ENGINES = 16
_FINISHED = 3


class _Batch:
    """One that was scheduled: its requests' states, and of those whose prompts are in it, how many tokens."""

    __slots__ = ("decodes", "prefills", "states")

    def __init__(self, futures: list[Any]) -> None:
        self.states = [one.state for one in futures]
        prompts = [one for one in futures if one.query_length > 1 or not one.state.generated_tokens]
        self.prefills = [(str(one.state.request_id), int(one.query_length)) for one in prompts]
        self.decodes = len(futures) - len(prompts)

    @property
    def kind(self) -> str:
        return "decode" if not self.prefills else "mixed" if self.decodes else "prefill"


class _Engine:
    """One scheduler."""

    def __init__(self, release: str) -> None:
        self.account = Account("transformers", release)
        self.flying: deque[_Batch] = deque()
        self.prepared: _Batch | None = None
        self.began_ns = self.last_ns = 0
        self.computed: dict[str, int] = {}
        """Tokens of each open request's prompt that were computed: the others came from the prefix cache."""


class ContinuousFollower:
    """Follows every scheduler of this process."""

    def __init__(self, native: Native, followed: Followed, every_ns: int, changed: Callable[[], None]) -> None:
        self._native = native
        self._followed = followed
        self._every_ns = every_ns
        self._changed = changed
        self._written_ns = 0
        self._engines: weakref.WeakKeyDictionary[Any, _Engine] = weakref.WeakKeyDictionary()
        self._accounts: list[Account] = []
        self._waiting: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def modules(self) -> list[tuple[str, Callable[[ModuleType], None]]]:
        """For `Followed.modules`."""
        return [
            (f"{PACKAGE}.continuous_api", self._follow_processor),
            (f"{PACKAGE}.scheduler", self._follow_scheduler),
        ]

    def facts(self) -> list[dict[str, Any]]:
        """Of engines that were given a request or made a step."""
        return [one.facts() for one in self._accounts if one.first_step_ns or one.open]

    def forget(self) -> None:
        """The parent's requests are the parent's."""
        self._engines = weakref.WeakKeyDictionary()
        self._waiting = weakref.WeakKeyDictionary()
        self._accounts = []

    def _follow_scheduler(self, module: ModuleType) -> None:
        base = getattr(module, "Scheduler", None)
        self._followed.method(base, "add_waiting_request", self._add, ("state",))
        self._followed.method(base, "clear_cancelled_requests", self._cancel, ())
        for name in _SCHEDULERS:
            self._followed.method(getattr(module, name, None), "schedule_batch", self._schedule, ("token_budget",))

    def _follow_processor(self, module: ModuleType) -> None:
        processor = getattr(module, "ContinuousBatchProcessor", None)
        self._followed.method(processor, "prepare_next_batch", self._prepare, ())
        self._followed.method(processor, "_generation_step", self._step, ("model",))
        self._followed.method(processor, "update_batch", self._update, ())
        self._followed.method(processor, "_handle_request_error", self._failed, ("error", "state"))
        manager = getattr(module, "ContinuousBatchingManager", None)
        self._followed.method(manager, "_run_generation_loop", self._loop, ())

    def _of(self, scheduler: Any) -> _Engine | None:
        engine = self._engines.get(scheduler)
        if engine is None and len(self._accounts) < _MOST_ENGINES:
            engine = self._engines[scheduler] = _Engine(self._followed.release)
            engine.account.earlier = len(scheduler.active_requests) + len(scheduler.waiting_requests)
            self._accounts.append(engine.account)
        return engine

    # ---------------------------------------------------------------- the scheduler

    def _add(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_waiting_request(scheduler: Any, state: Any, *arguments: Any, **named: Any) -> Any:
            try:
                self._arrived(scheduler, state)
            except Exception as error:
                self._followed.lose("a request's arrival", error)
            return original(scheduler, state, *arguments, **named)

        return add_waiting_request

    def _arrived(self, scheduler: Any, state: Any) -> None:
        engine = self._of(scheduler)
        if engine is None:
            return
        now_ns, name = time.monotonic_ns(), str(state.request_id)
        if name in engine.account.open:  # it lost its place in the cache and waits once more
            engine.account.preempted(name, now_ns)
            return
        age_ns = int((time.perf_counter() - float(state.created_time)) * 1e9)
        engine.account.arrived(Request(name, now_ns - age_ns, now_ns, len(state.initial_tokens)))
        if name in engine.account.open:
            engine.computed[name] = 0

    def _cancel(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clear_cancelled_requests(scheduler: Any, *arguments: Any, **named: Any) -> Any:
            states = original(scheduler, *arguments, **named)
            try:
                engine = self._of(scheduler)
                for state in states or () if engine is not None else ():
                    self._end(engine, state, "abort", time.monotonic_ns())
            except Exception as error:
                self._followed.lose("a request that was given up", error)
            return states

        return clear_cancelled_requests

    def _schedule(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def schedule_batch(scheduler: Any, *arguments: Any, **named: Any) -> Any:
            made = original(scheduler, *arguments, **named)
            try:
                engine, futures = self._of(scheduler), made[0]
                if engine is not None:
                    engine.prepared = _Batch(futures) if futures else None
            except Exception as error:
                self._followed.lose("a batch", error)
            return made

        return schedule_batch

    # ---------------------------------------------------------------- the processor

    def _prepare(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def prepare_next_batch(processor: Any, *arguments: Any, **named: Any) -> Any:
            self._work(processor)
            began_ns = time.monotonic_ns()
            token = native.phase_begin(SCHEDULING)
            there = False
            try:
                there = original(processor, *arguments, **named)
                return there
            finally:
                native.phase_end(token)
                try:
                    self._prepared(processor, bool(there), began_ns)
                except Exception as error:
                    self._followed.lose("a batch", error)

        return prepare_next_batch

    def _prepared(self, processor: Any, there: bool, began_ns: int) -> None:
        engine = self._of(processor.scheduler)
        if engine is None:
            return
        batch, engine.prepared = engine.prepared, None
        if not there:
            if not engine.account.open:
                self._waiting[processor] = self._native.phase_begin(NO_WORK)
            return
        if batch is None:
            return
        now_ns, account = time.monotonic_ns(), engine.account
        if not engine.flying:
            account.step_begins(began_ns)
            engine.last_ns = began_ns
        engine.flying.append(batch)
        for state in batch.states:
            account.scheduled(str(state.request_id), now_ns)
        for name, tokens in batch.prefills:
            if name in engine.computed:
                engine.computed[name] += tokens

    def _work(self, processor: Any) -> None:
        """The wait for requests has ended."""
        token = self._waiting.pop(processor, 0)
        if token:
            self._native.phase_end(token)

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def generation_step(processor: Any, *arguments: Any, **named: Any) -> Any:
            token = 0
            try:
                engine = self._of(processor.scheduler)
                if engine is not None and engine.flying:
                    token = native.phase_begin(engine.flying[-1].kind)
            except Exception as error:
                self._followed.lose("the kind of a step", error)
            try:
                return original(processor, *arguments, **named)
            finally:
                if token:
                    native.phase_end(token)

        return generation_step

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def update_batch(processor: Any, *arguments: Any, **named: Any) -> Any:
            token = native.phase_begin(SCHEDULING)
            try:
                return original(processor, *arguments, **named)
            finally:
                native.phase_end(token)
                try:
                    self._updated(processor)
                except Exception as error:
                    self._followed.lose("the end of a step", error)

        return update_batch

    def _updated(self, processor: Any) -> None:
        scheduler = processor.scheduler
        engine = self._of(scheduler)
        if engine is None or not engine.flying:
            return
        now_ns, account, batch = time.monotonic_ns(), engine.account, engine.flying.popleft()
        began_ns, engine.last_ns = engine.last_ns or now_ns, now_ns
        account.step(
            batch.kind,
            now_ns - began_ns,
            now_ns,
            sequences=len(batch.states),
            prefill_tokens=sum(tokens for _, tokens in batch.prefills),
            decode_tokens=batch.decodes,
            prefills=batch.prefills,
            running=len(scheduler.active_requests),
            waiting=len(scheduler.waiting_requests),
            cache=_used(getattr(scheduler, "cache", None)),
        )
        prompts = dict(batch.prefills)
        made = batch.decodes
        for state in batch.states:
            name = str(state.request_id)
            if name in prompts and state.generated_tokens:
                account.first_token(name, now_ns)
                made += 1
            if int(state.status) == _FINISHED:
                limit = state.max_new_tokens is not None and len(state.generated_tokens) >= state.max_new_tokens
                self._end(engine, state, "length" if limit else "stop", now_ns)
        account.recent.tokens(now_ns, made)
        if now_ns - self._written_ns > self._every_ns:
            self._written_ns = now_ns
            self._changed()

    def _failed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def handle_request_error(processor: Any, error: Any, state: Any, *arguments: Any, **named: Any) -> Any:
            try:
                engine = self._of(processor.scheduler)
                if engine is not None:
                    self._end(engine, state, "error", time.monotonic_ns())
            except Exception as ours:
                self._followed.lose("a request that failed", ours)
            return original(processor, error, state, *arguments, **named)

        return handle_request_error

    def _loop(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run_generation_loop(manager: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return original(manager, *arguments, **named)
            finally:
                try:
                    self._work(getattr(manager, "batch_processor", None))
                    self._changed()
                except Exception as error:
                    self._followed.lose("the end of the engine", error)

        return run_generation_loop

    def _end(self, engine: _Engine | None, state: Any, reason: str, now_ns: int) -> None:
        if engine is None:
            return
        name = str(state.request_id)
        computed = engine.computed.pop(name, None)
        if computed is not None:
            cached = max(len(state.initial_tokens) - computed, 0) if state.generated_tokens else 0
            engine.account.end(name, reason, len(state.generated_tokens), cached, now_ns)


def _used(cache: Any) -> float:
    """Share of the paged cache in use; below 0 where it is not known."""
    pool = getattr(cache, "pool", None)
    free, whole = getattr(pool, "num_free_sectors", None), getattr(cache, "num_sectors", None)
    return 1 - free / whole if isinstance(free, int) and isinstance(whole, int) and whole > 0 else -1.0
