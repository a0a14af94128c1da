"""The account of an engine as a profile holds it. Times are nanoseconds; what was not measured is 0 or empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leadline._dataclass import dataclass, field
from leadline._histogram import Histogram, merged

KINDS = ("prefill", "decode", "mixed")
MOST_SLOWEST = 20
_TRACE = re.compile("[0-9a-f]{32}")
_OF_A_CALL = re.compile(r"call \d+, row \d+")
"""What a sequence of `generate` is named, in files that do not say `called`."""


@dataclass(frozen=True)
class SlowRequest:
    """One of the slowest requests, whole. `values`: by the names of `Engine.requests`; `trace`: of OpenTelemetry, empty
    where its client sent none."""

    name: str
    at_ms: int
    reason: str
    preemptions: int
    values: Mapping[str, int]
    trace: str = ""

    @property
    def e2e_ns(self) -> int:
        return self.values.get("e2e", 0)


@dataclass(frozen=True)
class Engine:
    """One engine, or several added up (`count`)."""

    name: str
    version: str
    pids: tuple[int, ...]
    serving_ns: int
    """From the first step to the end of the last one."""
    steps: Mapping[str, Histogram]
    batch: Mapping[str, Histogram]
    cache: Histogram
    """Share of the key-value cache in use at the end of steps, in 1/1000."""
    gap: Histogram
    """Between two steps while requests were there."""
    requests: Mapping[str, Histogram]
    ended: Mapping[str, int]
    open: int
    oldest_open_ns: int
    preemptions: int
    logprobs_requests: int
    prompt_logprobs_requests: int
    not_followed: int
    earlier: int
    """Requests that were in the engine before measuring began; no figure of requests holds them."""
    odd_arrivals: int
    slowest: tuple[SlowRequest, ...]
    points: tuple[tuple[int, ...], ...]
    """(ms since the engine was seen, waiting, running, cache in 1/1000, requests that had ended)."""
    recent: Mapping[str, Any] = field(default_factory=dict)
    """Of the last minute."""
    moved: str = ""
    """What this release of Leadline did not find in the engine; empty where all was found."""
    count: int = 1
    called: bool = False
    """Whether the program itself calls transformers' `generate`: then what is counted as requests are the sequences of
    its calls, which nobody sent and which stand in no queue."""

    @property
    def number(self) -> int:
        """Requests that ended."""
        return sum(self.ended.values())

    @property
    def steps_ns(self) -> int:
        return sum(one.total for one in self.steps.values())

    @property
    def number_of_steps(self) -> int:
        return sum(one.count for one in self.steps.values())

    @property
    def no_work_ns(self) -> int:
        """While nothing was in the engine. Of several engines their sum, as `serving_ns`."""
        return max(self.serving_ns - self.steps_ns - self.gap.total, 0)

    @property
    def output_tokens(self) -> int:
        return self._total("output_tokens")

    @property
    def prompt_tokens(self) -> int:
        return self._total("prompt_tokens")

    @property
    def tokens_per_s(self) -> float:
        return self.output_tokens * 1e9 / self.serving_ns * self.count if self.serving_ns else 0.0

    def of(self, name: str) -> Histogram:
        """A distribution over requests; empty where nothing is known."""
        return self.requests.get(name, Histogram())

    def share_of(self, name: str, whole: str) -> float:
        """One distribution's sum over another's; 0 where nothing is known."""
        total = self.of(whole).total
        return self.of(name).total / total if total else 0.0

    def _total(self, name: str) -> int:
        return self.of(name).total


def engines_of(meta: Mapping[str, Any]) -> tuple[Engine, ...]:
    """Every engine of a profile, from its `meta`; what is no account of one is left out."""
    found = []
    processes = meta.get("processes")
    for record in processes if isinstance(processes, list) else ():
        if not isinstance(record, dict):
            continue
        listed = record.get("engines")
        available = record.get("available")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and isinstance(one.get("engine"), str):
                status = available.get(one["engine"]) if isinstance(available, dict) else None
                said = status.get("message") if isinstance(status, dict) else ""
                found.append(_engine(one, _number(record.get("pid")), said if isinstance(said, str) else ""))
    return tuple(one for one in found if one.number_of_steps or one.open or one.number)


def together(engines: Sequence[Engine]) -> Engine | None:
    """All as one; None where there is none."""
    if len(engines) < 2:
        return engines[0] if engines else None
    slowest = sorted((slow for one in engines for slow in one.slowest), key=lambda slow: -slow.e2e_ns)
    return Engine(
        name=engines[0].name,
        version=engines[0].version,
        pids=tuple(pid for one in engines for pid in one.pids),
        serving_ns=sum(one.serving_ns for one in engines),
        steps=_merged([one.steps for one in engines]),
        batch=_merged([one.batch for one in engines]),
        cache=merged(one.cache for one in engines),
        gap=merged(one.gap for one in engines),
        requests=_merged([one.requests for one in engines]),
        ended=_added([one.ended for one in engines]),
        open=sum(one.open for one in engines),
        oldest_open_ns=max(one.oldest_open_ns for one in engines),
        preemptions=sum(one.preemptions for one in engines),
        logprobs_requests=sum(one.logprobs_requests for one in engines),
        prompt_logprobs_requests=sum(one.prompt_logprobs_requests for one in engines),
        not_followed=sum(one.not_followed for one in engines),
        earlier=sum(one.earlier for one in engines),
        odd_arrivals=sum(one.odd_arrivals for one in engines),
        slowest=tuple(slowest[:MOST_SLOWEST]),
        points=max((one.points for one in engines), key=lambda points: sum(point[1] for point in points)),
        moved=next((one.moved for one in engines if one.moved), ""),
        count=len(engines),
        called=all(one.called for one in engines),
    )


def _engine(one: Mapping[str, Any], pid: int, moved: str) -> Engine:
    numbers = {
        name: _number(one.get(name))
        for name in (
            *("serving_ns", "open", "oldest_open_ns", "preemptions", "logprobs_requests", "prompt_logprobs_requests"),
            *("not_followed", "earlier", "odd_arrivals"),
        )
    }
    ended = one.get("ended")
    version, slowest, points, recent = (one.get(name) for name in ("version", "slowest", "points", "recent"))
    named = [str(request.get("id", "")) for request in _objects(slowest)]
    return Engine(
        name=str(one["engine"]),
        version=version if isinstance(version, str) else "",
        pids=(pid,),
        steps={name: histogram for name, histogram in _histograms(one.get("steps")).items() if name in KINDS},
        batch=_histograms(one.get("batch")),
        cache=Histogram.from_json(one.get("cache")),
        gap=Histogram.from_json(one.get("gap")),
        requests=_histograms(one.get("requests")),
        ended={str(name): _number(count) for name, count in ended.items()} if isinstance(ended, dict) else {},
        slowest=tuple(map(_slow, _objects(slowest)[:MOST_SLOWEST])),
        points=_points(points),
        recent=recent if isinstance(recent, dict) else {},
        moved=moved,
        called=one.get("called") == 1 or (bool(named) and all(map(_OF_A_CALL.fullmatch, named))),
        **numbers,
    )


def _slow(one: Mapping[str, Any]) -> SlowRequest:
    values = {str(name): value for name, value in one.items() if type(value) is int and value >= 0}
    reason, trace = one.get("reason"), one.get("trace")
    return SlowRequest(
        str(one.get("id", "")),
        _number(one.get("at_ms")),
        reason if isinstance(reason, str) else "",
        _number(one.get("preemptions")),
        values,
        trace if isinstance(trace, str) and _TRACE.fullmatch(trace) else "",
    )


def _points(points: object) -> tuple[tuple[int, ...], ...]:
    listed = points if isinstance(points, list) else []
    return tuple(
        tuple(one) for one in listed if isinstance(one, list) and len(one) == 5 and all(type(v) is int for v in one)
    )


def _objects(values: object) -> list[Mapping[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _histograms(values: object) -> dict[str, Histogram]:
    found = values.items() if isinstance(values, dict) else ()
    return {str(name): made for name, one in found if (made := Histogram.from_json(one)).count}


def _merged(listed: Sequence[Mapping[str, Histogram]]) -> dict[str, Histogram]:
    names = dict.fromkeys(name for one in listed for name in one)
    return {name: merged(one[name] for one in listed if name in one) for name in names}


def _added(listed: Iterable[Mapping[str, int]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for one in listed:
        for name, count in one.items():
            made[name] = made.get(name, 0) + count
    return made


def _number(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0
