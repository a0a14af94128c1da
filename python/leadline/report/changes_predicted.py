"""What `leadline whatif` predicts, and what `leadline try` has measured of the same program, as one page of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline._dataclass import replace
from leadline.report.changes import Advice, Bar, Changes, Group, Lane, Lanes, Part, Row
from leadline.units import change, duration, percent
from leadline.whatif.advice import advice, useful
from leadline.whatif.export.strips import BINS, LEVELS, Strips, strips
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import LaneKind
from leadline.whatif.ledger import RESIDUAL
from leadline.whatif.predict import WORTH_DOING, Prediction, Report, replay
from leadline.whatif.render import headline

_LEAST_PART = 0.0005
_ADDS_UP = 0.02
_HEADS = ("gain", "range")
_KINDS = {LaneKind.THREAD: "thread", LaneKind.STREAM: "stream", LaneKind.CHANNEL: "channel"}


def predicted_changes(
    graph: Graph,
    report: Report,
    program: str,
    file: str,
    *,
    asked: bool = False,
    tried: Sequence[Mapping[str, Any]] = (),
) -> Changes:
    """What `report` says of `graph`. `asked`: its scenarios were named, so they are the question and no advice is
    given. `tried`: entries of the ledger."""
    report = report if report.ledger else replace(report, ledger=replay(graph).ledger)
    best = () if asked else useful(report)
    chosen = report.scenarios[:1] if asked else best[:1]
    rest = advice(report)[len(best) :] if report.scenarios and not asked else []
    left = tuple(f"{name}: {why}" for name, why in report.not_applicable.items())
    sentence, notes = _sentence(report, chosen, asked), (report.coverage, *report.warnings)
    if not best and rest and not asked:
        sentence, *rest = rest
    return Changes(
        "What if",
        program,
        f"{len(report.steps)} step{'s' * (len(report.steps) != 1)} of the trace window",
        "a step, measured",
        sentence,
        (headline(report),),
        (_now(report), *(_bar(one) for one in chosen)),
        tuple(_advice(one, report, file) for one in best),
        _HEADS if report.scenarios else (),
        (*_groups(report), *_tried(tried)),
        tuple(note for note in (*rest, *notes) if note),
        left,
        _parts(report),
        _parts_note(report),
        _lanes(graph, chosen),
    )


def tried_changes(program: str, tried: Sequence[Mapping[str, Any]]) -> Changes:
    """Where nothing can be predicted: what was measured."""
    sentence = "What `leadline try` has measured of this program"
    return Changes("What if", program, "", "", sentence, (), (), (), _HEADS, tuple(_tried(tried)))


def _lanes(graph: Graph, chosen: Sequence[Prediction]) -> Lanes | None:
    """The measured timeline and that of the question, or of the best advice."""
    known = [(one.title, one.graph, one.result) for one in chosen if one.graph is not None and one.result is not None]
    found = strips(graph, *known[0]) if known else None
    return _drawn(found) if found is not None else None


def _drawn(found: Strips) -> Lanes:
    first, last = found.steps[0], found.steps[-1]
    which = f"steps {first} and {last}" if last != first else f"step {first}"
    said = (
        f"{which}: above as measured ({duration(found.measured_ns)}), below with {found.title} "
        f"({duration(found.predicted_ns)}), on one axis; the fuller the colour, the busier"
    )
    lanes = tuple(Lane(one.name, _KINDS[one.kind], one.measured, one.predicted) for one in found.lanes)
    return Lanes(said, BINS, LEVELS, lanes)


def _now(report: Report) -> Bar:
    return Bar("now", report.measured_ns, before=True)


def _bar(found: Prediction) -> Bar:
    return Bar(found.title, found.predicted_ns, found.low_ns, found.high_ns, gains=found.speedup > 1)


def _sentence(report: Report, chosen: Sequence[Prediction], asked: bool) -> str:
    now = duration(report.replayed_ns)
    if not chosen:
        return f"A step takes {duration(report.measured_ns)}"
    found = chosen[0]
    do = f"With {found.title}" if asked else found.advice[:1].upper() + found.advice[1:]
    join = "" if asked else ":"
    if found.samples != 1:
        return f"{do}{join} {found.speedup:.2f}x the samples a second"
    may = "should take" if found.verdict in ("likely", "slower") else "may take"
    return f"{do}{join} a step {may} {duration(found.predicted_ns)} instead of {now}"


def _gain(found: Prediction) -> str:
    return f"{found.speedup:.2f}x"


def _range(found: Prediction) -> str:
    low, high = f"{found.low_gain:.2f}x", f"{found.high_gain:.2f}x"
    return low if low == high else f"{low} to {high}"


def _advice(found: Prediction, report: Report, file: str) -> Advice:
    step = f"{duration(report.replayed_ns)} → {duration(found.predicted_ns)}"
    per = ", in samples a second" if found.samples != 1 else ""
    certain = () if found.verdict == "likely" else ("It may also gain nothing.",)
    return Advice(
        found.advice[:1].upper() + found.advice[1:],
        f"{step}, {_gain(found)} ({_range(found)}){per}",
        found.verdict,
        (*certain, *found.assumptions),
        f"leadline whatif {file} --scenario {found.name}" if file and "+" not in found.name else "",
    )


def _groups(report: Report) -> list[Group]:
    own = [one for one in report.scenarios if not one.hypothetical]
    rest = [one for one in own if abs(one.speedup - 1) < WORTH_DOING - 1 and one.verdict in ("nothing", "possible")]
    tells = [one for one in own if one not in rest]
    hardware = [one for one in report.scenarios if one.hypothetical]
    made = (
        ("Changes", tells, False),
        (f"{len(rest)} that gain{'s' * (len(rest) == 1)} nothing", rest, True),
        ("Other hardware, and limits", hardware, False),
    )
    return [Group(title, tuple(map(_row, found)), folded) for title, found, folded in made if found]


def _row(found: Prediction) -> Row:
    touched = ", ".join(f"{number} {what}" for what, number in found.applied_to.items())
    more = (*found.assumptions, *((f"applied to {touched}",) if touched else ()), *found.warnings)
    return Row(_bar(found), (_gain(found), _range(found)), found.verdict, more)


def _tried(entries: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Measured is measured: what a trial found stands beside what is predicted."""
    rows = []
    for one in entries:
        base = float(one.get("step_ns") or 0.0)
        median, low, high = (one["measured"][name] for name in ("median", "low", "high"))
        bar = Bar(str(one["remedy"]), base * (1 + median), base * (1 + low), base * (1 + high), gains=high < 0)
        said = f"of {duration(base)}, {one.get('time', '')}".rstrip(", ")
        said += f"; with another {one['edited']} than this profile's" if one.get("edited") else ""
        before = one.get("predicted")
        more = (f"predicted: {change(before['median'])}",) if before else ()
        rows.append(Row(bar, (change(median), f"{change(low)} to {change(high)}"), str(one["verdict"]), (said, *more)))
    return [Group("Tried on this program (leadline try)", tuple(rows))] if rows else []


def _parts_note(report: Report) -> str:
    """The path leads through the whole window, which may hold more than its steps."""
    whole = sum(row.spent_ns for row in report.ledger)
    said = "along its critical path; hatched is waiting, grey has no known cause"
    if abs(whole - report.measured_ns) < _ADDS_UP * report.measured_ns:
        return said
    return f"{said}; with what passes between the steps of the window, {duration(whole)} a step"


def _parts(report: Report) -> tuple[Part, ...]:
    total = sum(row.spent_ns for row in report.ledger) or 1.0
    return tuple(
        Part(row.name, row.sort, row.spent_ns, f"{percent(row.confidence)} as long as usual" * (row.sort == RESIDUAL))
        for row in report.ledger
        if row.spent_ns >= _LEAST_PART * total
    )
