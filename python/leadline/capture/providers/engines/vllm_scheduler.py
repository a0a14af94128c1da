"""vLLM's scheduler, which knows every request and every batch: `add_request`, `schedule`, `update_from_output`,
`finish_requests`. All that is told of requests and batches is read here, on the engine's own thread.

A step reaches from `schedule` to the end of its `update_from_output`; where batches overlap (asynchronous scheduling),
from the end of the one before.
"""

from __future__ import annotations

import re
import time
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from leadline.capture.config import Options
from leadline.capture.native import Native
from leadline.capture.providers.engines.account import Account
from leadline.capture.providers.engines.follow import Followed
from leadline.capture.providers.engines.request import Request

_MOST_ENGINES = 16
_REASONS = {"0": "stop", "1": "length", "2": "abort", "3": "error", "4": "repetition"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
"""W3C Trace Context."""


def split(output: Any) -> tuple[int, int, list[tuple[str, int]]]:
    """Of a batch: requests that decode, tokens of prompts, and whose prompts are in it with how many tokens."""
    tokens: dict[str, int] = output.num_scheduled_tokens
    cached = output.scheduled_cached_reqs
    prompts = [one.req_id for one in output.scheduled_new_reqs]
    made: list[int] = cached.num_output_tokens
    if 0 in made:
        prompts += [name for name, count in zip(cached.req_ids, made, strict=False) if count == 0]
    if cached.resumed_req_ids:  # their cache is gone: prompt and output are computed again
        prompts += [name for name in cached.resumed_req_ids if name not in prompts]
    found = [(name, tokens[name]) for name in prompts if name in tokens]
    return len(tokens) - len(found), sum(count for _, count in found), found


def kind_of(output: Any) -> str:
    """`prefill`, `decode` or `mixed`."""
    decodes, _, prefills = split(output)
    return "decode" if not prefills else "mixed" if decodes else "prefill"


def trace_of(headers: Any) -> str:
    """The trace that a request belongs to; empty where its client sent none, or vLLM's tracing is off."""
    said = headers.get("traceparent") if isinstance(headers, Mapping) else None
    found = _TRACEPARENT.match(said) if isinstance(said, str) else None
    return found[1] if found else ""


class _Graphs:
    """The sizes of batches that the engine is configured to capture as graphs."""

    def __init__(self, scheduler: Any) -> None:
        compilation = getattr(getattr(scheduler, "vllm_config", None), "compilation_config", None)
        sizes = getattr(compilation, "cudagraph_capture_sizes", None)
        self._mode = str(getattr(getattr(compilation, "cudagraph_mode", None), "name", "NONE"))
        listed = sizes if isinstance(sizes, list) and self._mode != "NONE" else []
        self._sizes: list[int] = sorted(one for one in listed if type(one) is int)

    def size(self, tokens: int, *, decodes_only: bool) -> int:
        """What a batch of so many tokens is padded to; 0 where it runs in no graph."""
        if self._mode == "FULL_DECODE_ONLY" and not decodes_only:
            return 0
        at = bisect_left(self._sizes, tokens)
        return self._sizes[at] if at < len(self._sizes) else 0


class _Engine:
    """One scheduler, and the batches that it has given out."""

    def __init__(self, version: str, graphs: _Graphs) -> None:
        self.account = Account("vllm", version)
        self.graphs = graphs
        self.requests: dict[str, Any] = {}
        self.flying: deque[int] = deque()
        self.waiting_first: set[str] = set()
        self.last_ns = 0


class SchedulerFollower:
    """Follows every scheduler of this process."""

    def __init__(self, native: Native, options: Options, changed: Callable[[], None]) -> None:
        self.version = ""
        self._native = native
        self._changed = changed
        self._every_ns = int(max(options.flush_interval_s, 1.0) * 1e9)
        self._written_ns = self._write_ns = 0
        self._engines: weakref.WeakKeyDictionary[Any, _Engine] = weakref.WeakKeyDictionary()
        self._accounts: list[Account] = []
        self._followed: Followed | None = None

    def facts(self) -> list[dict[str, Any]]:
        """Of engines that were given a request or made a step."""
        return [one.facts() for one in self._accounts if one.first_step_ns or one.open]

    def accounts(self) -> list[Account]:
        return list(self._accounts)

    def forget(self) -> None:
        self._engines = weakref.WeakKeyDictionary()
        self._accounts = []

    def idle(self) -> None:
        """The engine has nothing to do: a good moment to write, at most 1 % of the time; its parent may kill it."""
        now_ns = time.monotonic_ns()
        if self._accounts and now_ns - self._written_ns > 100 * self._write_ns:
            self._write(now_ns)

    def follow(self, kind: Any, followed: Followed, scheduling: str) -> None:
        self._followed = followed
        self._phase = scheduling
        followed.method(kind, "add_request", self._add, ("request",))
        followed.method(kind, "schedule", self._schedule, ())
        followed.method(kind, "update_from_output", self._update, ("scheduler_output", "model_runner_output"))
        followed.method(kind, "finish_requests", self._finish, ("request_ids", "finished_status"))

    def _of(self, scheduler: Any) -> _Engine | None:
        engine = self._engines.get(scheduler)
        if engine is None and len(self._accounts) < _MOST_ENGINES:
            engine = self._engines[scheduler] = _Engine(self.version, _Graphs(scheduler))
            there = getattr(scheduler, "requests", None)  # none of them was seen to arrive
            engine.account.earlier = len(there) if isinstance(there, dict) else 0
            self._accounts.append(engine.account)
        return engine

    def _lose(self, what: str, error: Exception) -> None:
        if self._followed is not None:
            self._followed.lose(what, error)

    # ---------------------------------------------------------------- wrappers

    def _add(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_request(scheduler: Any, request: Any, *arguments: Any, **named: Any) -> Any:
            try:
                self._arrived(scheduler, request)
            except Exception as error:
                self._lose("a request's arrival", error)
            return original(scheduler, request, *arguments, **named)

        return add_request

    def _arrived(self, scheduler: Any, request: Any) -> None:
        engine = self._of(scheduler)
        if engine is None or request.request_id in engine.requests:  # a further part of a streamed request
            return
        now_ns = time.monotonic_ns()
        age_ns = int((time.time() - float(request.arrival_time)) * 1e9)
        sampling = getattr(request, "sampling_params", None)
        one = Request(
            request.request_id,
            now_ns - age_ns,
            now_ns,
            int(request.num_prompt_tokens),
            logprobs=getattr(sampling, "logprobs", None) is not None,
            prompt_logprobs=getattr(sampling, "prompt_logprobs", None) is not None,
            trace=trace_of(getattr(request, "trace_headers", None)),
        )
        engine.account.arrived(one)
        if request.request_id in engine.account.open:
            engine.requests[request.request_id] = request
            engine.waiting_first.add(request.request_id)

    def _schedule(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def schedule(scheduler: Any, *arguments: Any, **named: Any) -> Any:
            began_ns = time.monotonic_ns()
            token = native.phase_begin(self._phase)
            try:
                output = original(scheduler, *arguments, **named)
            finally:
                native.phase_end(token)
            try:
                self._scheduled(scheduler, output, began_ns)
            except Exception as error:
                self._lose("a batch", error)
            return output

        return schedule

    def _scheduled(self, scheduler: Any, output: Any, began_ns: int) -> None:
        engine = self._of(scheduler)
        if engine is None:
            return
        now_ns = time.monotonic_ns()
        for name in output.preempted_req_ids or ():
            engine.account.preempted(name, now_ns)
        if not output.total_num_scheduled_tokens:
            return
        if not engine.flying:
            engine.account.step_begins(began_ns)
            engine.last_ns = began_ns
        engine.flying.append(began_ns)
        for one in output.scheduled_new_reqs:
            engine.account.scheduled(one.req_id, now_ns)
        for name in output.scheduled_cached_reqs.resumed_req_ids or ():
            engine.account.scheduled(name, now_ns)

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        native = self._native

        def update_from_output(scheduler: Any, scheduler_output: Any, *arguments: Any, **named: Any) -> Any:
            token = native.phase_begin(self._phase)
            try:
                made = original(scheduler, scheduler_output, *arguments, **named)
            finally:
                native.phase_end(token)
            try:
                self._updated(scheduler, scheduler_output, made)
            except Exception as error:
                self._lose("the end of a step", error)
            return made

        return update_from_output

    def _updated(self, scheduler: Any, output: Any, made: Any) -> None:
        engine = self._of(scheduler)
        if engine is None or not output.total_num_scheduled_tokens:
            return
        now_ns = time.monotonic_ns()
        account = engine.account
        if engine.flying:
            engine.flying.popleft()
        began_ns, engine.last_ns = engine.last_ns or now_ns, now_ns
        decodes, prompt_tokens, prefills = split(output)
        running, waiting = scheduler.get_request_counts()
        account.step(
            "decode" if not prefills else "mixed" if decodes else "prefill",
            now_ns - began_ns,
            now_ns,
            sequences=len(output.num_scheduled_tokens),
            prefill_tokens=prompt_tokens,
            decode_tokens=output.total_num_scheduled_tokens - prompt_tokens,
            prefills=prefills,
            running=running,
            waiting=waiting,
            cache=float(scheduler.get_kv_cache_usage()),
            graph_tokens=engine.graphs.size(output.total_num_scheduled_tokens, decodes_only=not prefills),
        )
        outputs = [one for group in (made or {}).values() for one in group.outputs]
        account.recent.tokens(now_ns, sum([len(one.new_token_ids) for one in outputs]))
        if engine.waiting_first:
            for one in outputs:
                if one.request_id in engine.waiting_first and one.new_token_ids:
                    engine.waiting_first.discard(one.request_id)
                    account.first_token(one.request_id, now_ns)
        for one in outputs:
            if one.finish_reason is not None:
                reason = str(one.finish_reason)
                self._end(engine, one.request_id, _REASONS.get(reason, reason), now_ns)
        if now_ns - self._written_ns > self._every_ns:
            self._write(now_ns)

    def _finish(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def finish_requests(scheduler: Any, request_ids: Any, *arguments: Any, **named: Any) -> Any:
            done = original(scheduler, request_ids, *arguments, **named)
            try:
                engine = self._of(scheduler)
                names = (request_ids,) if isinstance(request_ids, str) else request_ids
                if engine is not None:
                    for name in list(engine.requests if names is None else names):
                        request = engine.requests.get(name)
                        if request is not None and request.is_finished():
                            self._end(engine, name, "abort", time.monotonic_ns())
            except Exception as error:
                self._lose("a request that was given up", error)
            return done

        return finish_requests

    def _end(self, engine: _Engine, name: str, reason: str, now_ns: int) -> None:
        request = engine.requests.pop(name, None)
        engine.waiting_first.discard(name)
        if request is not None:
            cached = max(int(getattr(request, "num_cached_tokens", 0) or 0), 0)
            engine.account.end(name, reason, int(request.num_output_tokens), cached, now_ns)

    def _write(self, now_ns: int) -> None:
        self._written_ns = now_ns
        self._changed()
        self._write_ns = time.monotonic_ns() - now_ns
