"""An engine in words: the sentence of the verdict, the rows of the report, a line for a live screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline._dataclass import dataclass
from leadline._histogram import Histogram
from leadline.engines.model import KINDS, Engine
from leadline.engines.waited import WAITS, waited_for
from leadline.units import duration, number, percent

QUANTILES = (0.5, 0.9, 0.99)
NAMES = {
    "ttft": "time to first token",
    "queue": "  in the queue",
    "prefill": "  prefill",
    "tpot": "time per output token",
    "e2e": "end to end",
}
"""Distributions over requests in the order of the report."""
BATCH = {
    "sequences": "sequences in a step",
    "prefill_tokens": "prompt tokens in a step that has some",
    "decode_tokens": "output tokens in a step that has some",
    "padding": "tokens of padding in a captured graph",
    "waiting": "requests in the queue",
}
SHARE_RULE = "a {one}'s share of a step is its tokens over the step's tokens"
_IN_CALLS = {"queue": "  before the first step"}
"""In place of `NAMES` where the program itself calls `generate`."""
_LONGEST_NAME = 16
_QUANTILE_HEADS = ("p50", "p90", "p99", "max")
_STEP_HEADS = {
    False: ("engine step", "number", "of serving"),
    True: ("step of generate()", "number", "of all time"),
}
_WORDS = "waited"
"""Head of the column whose cells are words, beside the first."""


@dataclass(frozen=True)
class Table:
    """What a host draws as it is: cells are words."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @property
    def texts(self) -> tuple[bool, ...]:
        """Which columns hold words and not figures."""
        return tuple(not i or head == _WORDS for i, head in enumerate(self.heads))


def tables(engine: Engine, slowest: int) -> list[Table]:
    """Requests, engine steps, batches, and the `slowest` requests; those that have no rows are left out."""
    one = "sequence" if engine.called else "request"
    slow = (f"slowest {one}s", "arrived", "took", "first token", "tokens", "of steps", "waited")
    note = f"tokens: of prompt + output; of steps: {SHARE_RULE.format(one=one)}"
    if any(one.trace for one in engine.slowest[:slowest]):
        note += "; a request with 32 digits is named by its OpenTelemetry trace"
    made = [
        _table((f"{one}s", *_QUANTILE_HEADS), request_rows(engine)),
        _table(
            (*_STEP_HEADS[engine.called], *_QUANTILE_HEADS),
            step_rows(engine),
        ),
        _table(("batch", *_QUANTILE_HEADS), batch_rows(engine)),
        _table(slow, slow_rows(engine, slowest), note),
    ]
    return [one for one in made if one.rows]


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], note: str = "") -> Table:
    return Table(heads, tuple(rows), note)


def sentence(engine: Engine) -> str:
    """The first line of a server's verdict; of a program that calls `generate` itself, a fact of it."""
    if engine.called:
        return _generated(engine)
    ttft, tpot = engine.of("ttft"), engine.of("tpot")
    said = f"serves {number(engine.number)} requests, {_rate(engine.tokens_per_s)}"
    if ttft.count:
        queue = engine.share_of("queue", "ttft")
        waits = f" ({percent(queue)} of it in the queue)" if queue >= 0.1 else ""
        said += f"; first token {_middle_and_tail(ttft)}{waits}"
    if tpot.count:
        said += f"; each further token {_middle_and_tail(tpot)}"
    if engine.open:
        said += f"; {number(engine.open)} requests had not ended"
    return f"{said}; engine steps: {kinds_sentence(engine)}" if engine.number_of_steps else said


def _generated(engine: Engine) -> str:
    """What calls of `generate` made: sequences that begin and end together, of which each step makes one token."""
    ttft, tpot = engine.of("ttft"), engine.of("tpot")
    said = f"generate() makes {number(engine.number)} sequences, {_rate(engine.tokens_per_s)}"
    if ttft.count:
        said += f"; the first token of a sequence takes {_middle_and_tail(ttft)}"
    if tpot.count:
        said += f"; each further token {_middle_and_tail(tpot)}"
    return said


def title(engine: Engine) -> str:
    """How many engine steps, and what one takes."""
    mean = duration(engine.steps_ns / max(engine.number_of_steps, 1))
    return f"{number(engine.number_of_steps)} engine steps, {mean} each" if engine.number_of_steps else ""


def kinds_sentence(engine: Engine) -> str:
    """Of the time in engine steps, how much each kind takes."""
    return ", ".join(
        f"{kind} {percent(engine.steps[kind].total / max(engine.steps_ns, 1))}"
        for kind in KINDS
        if kind in engine.steps
    )


def facts(engine: Engine) -> list[str]:
    """What stands above the tables."""
    ended = ", ".join(f"{number(count)} {reason}" for reason, count in sorted(engine.ended.items()))
    many = "sequences" if engine.called else "requests"
    said = [
        f"{number(engine.number)} {many} ended ({ended}), {number(engine.open)} had not{_oldest(engine)}"
        if ended
        else f"{number(engine.open)} {many} had not ended{_oldest(engine)}",
        f"{number(engine.prompt_tokens)} prompt tokens and {number(engine.output_tokens)} output tokens in "
        f"{duration(engine.serving_ns)}: {_rate(engine.tokens_per_s)}",
    ]
    if cached := engine.of("cached_tokens").total:
        said.append(f"{percent(cached / max(engine.prompt_tokens, 1))} of the prompt tokens were in the prefix cache")
    if not engine.called:
        said.append(f"{number(engine.preemptions)} preemptions")
    if engine.cache.count:
        said.append(
            f"key-value cache in use: p50 {percent(engine.cache.quantile(0.5) / 1000)}, "
            f"most {percent(engine.cache.most / 1000)}"
        )
    said += [engine.moved] if engine.moved else []
    if engine.count > 1:
        said.append(f"{engine.count} engines, added up")
    if engine.not_followed:
        said.append(f"{number(engine.not_followed)} requests came while 100,000 were open and are not in these figures")
    if engine.earlier:
        said.append(f"{number(engine.earlier)} requests came before measuring began and are in the steps' figures only")
    if engine.odd_arrivals:
        said.append(
            f"{number(engine.odd_arrivals)} requests arrived later than the engine had them: the clocks of the two "
            "processes differ, so their queue begins at the engine"
        )
    return said


def _oldest(engine: Engine) -> str:
    return f"; the oldest of these came {duration(engine.oldest_open_ns)} before the end" if engine.open else ""


def request_rows(engine: Engine) -> list[tuple[str, ...]]:
    """Name, p50, p90, p99, max."""
    names = {**NAMES, **_IN_CALLS} if engine.called else NAMES
    return [(words, *_cells(one, duration)) for name, words in names.items() if (one := engine.of(name)).count]


def batch_rows(engine: Engine) -> list[tuple[str, ...]]:
    """The same of batches."""
    return [
        (words, *_cells(engine.batch[name], lambda value: number(round(value))))
        for name, words in BATCH.items()
        if name in engine.batch and not (engine.called and name == "waiting")
    ]


def step_rows(engine: Engine) -> list[tuple[str, ...]]:
    """Kind, number, share of serving time, p50, p90, p99, max; then the time between steps, and without work."""
    whole = max(engine.serving_ns, 1)
    rows = [
        (kind, number(one.count), percent(one.total / whole), *_cells(one, duration))
        for kind in KINDS
        if (one := engine.steps.get(kind)) is not None
    ]
    if engine.gap.count:
        rows.append(
            (
                "between steps",
                number(engine.gap.count),
                percent(engine.gap.total / whole),
                *_cells(engine.gap, duration),
            )
        )
    rows.append(
        (
            "outside of generate()" if engine.called else "no work",
            "",
            percent(engine.no_work_ns / whole),
            "",
            "",
            "",
            "",
        )
    )
    return rows


def slow_rows(engine: Engine, most: int) -> list[tuple[str, ...]]:
    """Request, arrival, end to end, first token, tokens, share of steps, what it waited for."""
    rows: list[tuple[str, ...]] = []
    for one in engine.slowest[:most]:
        name, ns = waited_for(one)
        rows.append(
            (
                one.trace or _short(one.name),
                duration(one.at_ms * 1_000_000),
                duration(one.e2e_ns),
                duration(one.values["ttft"]) if "ttft" in one.values else "none",
                f"{number(one.values.get('prompt_tokens', 0))} + {number(one.values.get('output_tokens', 0))}",
                duration(one.values.get("share", 0)),
                f"{duration(ns)} {WAITS[name]}" if name else "nothing",
            )
        )
    return rows


def _short(name: str) -> str:
    """Names of requests differ at their ends."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def now_line(engine: Engine) -> str:
    """For a live screen: what the engine does now."""
    point = engine.points[-1] if engine.points else (0, 0, 0, -1, 0)
    recent = engine.recent
    rate = recent.get("tokens_per_s")
    words = [
        _rate(float(rate)) if isinstance(rate, int | float) else "",
        "" if engine.called else f"{number(point[1])} in the queue",
        f"{number(point[2])} running",
        f"cache {percent(point[3] / 1000)}" if point[3] >= 0 else "",
        _recent("first token", recent.get("ttft")),
        _recent("token", recent.get("tpot")),
    ]
    return f"{'generates' if engine.called else 'serves'}  {' · '.join(word for word in words if word)}"


def _recent(name: str, values: object) -> str:
    if not isinstance(values, Mapping):
        return ""
    middle, tail = values.get("p50"), values.get("p99")
    if not isinstance(middle, int) or not isinstance(tail, int):
        return ""
    return f"{name} p50 {duration(middle)}, p99 {duration(tail)}"


def _middle_and_tail(one: Histogram) -> str:
    return f"p50 {duration(one.quantile(0.5))}, p99 {duration(one.quantile(0.99))}"


def _cells(one: Histogram, words: Any) -> tuple[str, ...]:
    return (*(words(one.quantile(share)) for share in QUANTILES), words(one.most))


def _rate(tokens: float) -> str:
    return f"{number(round(tokens, 0 if tokens >= 10 else 1))} output tokens a second"
