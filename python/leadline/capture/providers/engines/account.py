"""The account of one engine: its steps, their batches, and what became of its requests.

Knows no engine: an adapter says what happened, in nanoseconds of CLOCK_MONOTONIC. Bounded: histograms of fixed size,
the slowest requests, a series of at most `MOST_POINTS`, and requests that have not ended (`MOST_OPEN`).
Called from the engine's own thread only; `facts` may be called from another one.

Of a step's time each request has the share that its tokens are of the step's tokens (see `Shares`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from leadline._histogram import Histogram
from leadline.capture.providers.engines.recent import Recent
from leadline.capture.providers.engines.request import MOST_KEPT, Request, Stretches

KINDS = ("prefill", "decode", "mixed")
MOST_POINTS = 128
MOST_OPEN = 100_000
PER_REQUEST = (
    *("queue", "prefill", "decode", "ttft", "tpot", "e2e", "prompt_tokens", "output_tokens", "cached_tokens"),
    *("preempted", "other_prefill", "between_steps", "share"),
)
_SMALL = 1024  # so that a batch of one sequence has a bin of its own
_SCALES = {"prompt_tokens": _SMALL, "output_tokens": _SMALL, "cached_tokens": _SMALL}
_BATCH = ("sequences", "prefill_tokens", "decode_tokens", "waiting", "running", "graph_tokens", "padding")


class Account:
    """One engine's; `name`: "vllm", "transformers"."""

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version
        self.began_ns = time.monotonic_ns()
        self.first_step_ns = 0
        self.last_ns = 0
        self.steps = {kind: Histogram() for kind in KINDS}
        self.batch = {name: Histogram(_SMALL) for name in _BATCH}
        self.cache = Histogram(_SMALL)
        """Of the key-value cache in use, in 1/1000."""
        self.gap = Histogram()
        """Between two steps while requests wait for the second."""
        self.requests = {name: Histogram(_SCALES.get(name, 1)) for name in PER_REQUEST}
        self.ended: dict[str, int] = {}
        self.preemptions = 0
        self.logprobs_requests = self.prompt_logprobs_requests = 0
        self.not_followed = 0
        self.earlier = 0
        """Requests that were in the engine before it was followed."""
        self.odd_arrivals = 0
        self.recent = Recent()
        self.open: dict[str, Request] = {}
        self.sums = Stretches()
        self._slowest: list[Request] = []
        self._points: list[list[int]] = []
        self._every_ns = 1_000_000_000
        self._next_point_ns = 0
        self._ended_step_ns = 0

    # ---------------------------------------------------------------- requests

    def arrived(self, request: Request) -> None:
        """A request is in the engine's queue from now on."""
        if len(self.open) >= MOST_OPEN:
            self.not_followed += 1
            return
        if not self.open and self._ended_step_ns:
            self._ended_step_ns = request.queued_ns  # until now there was no work, which is no pause
        request.totals = self.sums
        self.open[request.name] = request
        self.logprobs_requests += request.logprobs
        self.prompt_logprobs_requests += request.prompt_logprobs
        self.odd_arrivals += request.odd_arrival

    def scheduled(self, name: str, now_ns: int) -> None:
        """The request is in a batch, for the first time or again after a preemption."""
        if (request := self.open.get(name)) is not None:
            request.scheduled(now_ns)

    def preempted(self, name: str, now_ns: int) -> None:
        """The request lost its place and its cache."""
        self.preemptions += 1
        if (request := self.open.get(name)) is not None:
            request.preempted(now_ns)

    def first_token(self, name: str, now_ns: int) -> None:
        if (request := self.open.get(name)) is not None:
            request.first_token(now_ns)

    def end(self, name: str, reason: str, output_tokens: int, cached_tokens: int, now_ns: int) -> None:
        """The request is done."""
        request = self.open.pop(name, None)
        if request is None:
            return
        request.end(reason, output_tokens, cached_tokens, now_ns)
        self.ended[reason] = self.ended.get(reason, 0) + 1
        values = request.values()
        for key, value in values.items():
            self.requests[key].add(value)
        self.recent.add(now_ns, values, output_tokens)
        slowest = self._slowest
        if len(slowest) < MOST_KEPT or request.took_ns > slowest[-1].took_ns:
            slowest.append(request)
            slowest.sort(key=lambda one: -one.took_ns)
            del slowest[MOST_KEPT:]

    # ---------------------------------------------------------------- steps

    def step_begins(self, now_ns: int) -> None:
        """The engine begins to schedule; whether requests were waiting for that is known by whoever is open."""
        if self._ended_step_ns and self.open:
            gap = now_ns - self._ended_step_ns
            self.gap.add(gap)
            self.sums.gap_ns += gap
        self._ended_step_ns = 0
        if not self.first_step_ns:
            self.first_step_ns = now_ns

    def step(
        self,
        kind: str,
        took_ns: int,
        now_ns: int,
        *,
        sequences: int,
        prefill_tokens: int,
        decode_tokens: int,
        prefills: Iterable[tuple[str, int]] = (),
        running: int,
        waiting: int,
        cache: float = -1.0,
        graph_tokens: int = 0,
    ) -> None:
        """A step has ended. `prefills`: the requests whose prompts were in it, with their tokens; `cache`: share of the
        key-value cache in use, below 0 where unknown; `graph_tokens`: the size of the captured graph, 0 without one."""
        self.last_ns = now_ns
        self.steps[kind].add(took_ns)
        batch = self.batch
        batch["sequences"].add(sequences)
        if prefill_tokens:
            batch["prefill_tokens"].add(prefill_tokens)
        if decode_tokens:
            batch["decode_tokens"].add(decode_tokens)
        if graph_tokens:
            batch["graph_tokens"].add(graph_tokens)
            batch["padding"].add(graph_tokens - prefill_tokens - decode_tokens)
        batch["waiting"].add(waiting)
        batch["running"].add(running)
        if cache >= 0:
            self.cache.add(int(cache * 1000))
        self.sums.step(kind, took_ns, prefill_tokens + decode_tokens)
        for name, tokens in prefills:
            if (request := self.open.get(name)) is not None:
                request.prefilled(tokens, took_ns, prefill_tokens + decode_tokens)
        self._ended_step_ns = now_ns
        if now_ns >= self._next_point_ns:
            self._point(now_ns, waiting, running, int(cache * 1000))

    def _point(self, now_ns: int, waiting: int, running: int, cache: int) -> None:
        """One point of the run's series; when there are too many, every other one goes and points become rarer."""
        if len(self._points) >= MOST_POINTS:
            self._points = self._points[::2]
            self._every_ns *= 2
        self._points.append([(now_ns - self.began_ns) // 1_000_000, waiting, running, cache, self.ended_count])
        self._next_point_ns = now_ns + self._every_ns

    @property
    def ended_count(self) -> int:
        return sum(self.ended.values())

    def facts(self) -> dict[str, Any]:
        """Everything, as JSON holds it (docs/file-format.md)."""
        now_ns = time.monotonic_ns()
        still = list(self.open.values())
        return {
            "engine": self.name,
            "version": self.version,
            "first_step_ms": (self.first_step_ns - self.began_ns) // 1_000_000 if self.first_step_ns else -1,
            "serving_ns": max(self.last_ns - self.first_step_ns, 0) if self.first_step_ns else 0,
            "steps": {kind: one.to_json() for kind, one in self.steps.items() if one.count},
            "batch": {name: one.to_json() for name, one in self.batch.items() if one.count},
            "cache": self.cache.to_json(),
            "gap": self.gap.to_json(),
            "requests": {name: one.to_json() for name, one in self.requests.items() if one.count},
            "ended": dict(self.ended),
            "open": len(still),
            "oldest_open_ns": max((now_ns - one.arrived_ns for one in still), default=0),
            "preemptions": self.preemptions,
            "logprobs_requests": self.logprobs_requests,
            "prompt_logprobs_requests": self.prompt_logprobs_requests,
            "not_followed": self.not_followed,
            "earlier": self.earlier,
            "odd_arrivals": self.odd_arrivals,
            "slowest": [one.facts(self.began_ns) for one in list(self._slowest)],
            "points": [list(one) for one in list(self._points)],
            "recent": self.recent.facts(now_ns),
        }
