"""Kineto JSON (torch 1.8 to today, CUDA and ROCm) into the event tables.

Traps that this reader knows: categories were `Operator`, `Runtime`, `Kernel` up to torch 1.11, every range was an
operator then (meaning.py says what it is), and thread ids are text in places; `External id` of device work is only its
correlation id in many versions, so nothing is joined by it; times are microseconds, since torch 2.4 relative to
`baseTimeNanoseconds`; synchronisation records sit on threads that do not exist (stream + 1000000), so their `stream`
argument counts, not their `tid`; python_function events may sit on a process 0 of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.begin_end import paired
from leadline.trace.event_types import call_kind, settle
from leadline.trace.foreign import refusal
from leadline.trace.jsonstream import TraceText
from leadline.trace.launches import number_launches
from leadline.trace.source import Source
from leadline.trace.tables import EVENT_COLUMNS, Device, Flow, Kind, Thread, Trace, TraceError

_OPTIONS = ("record_shapes", "with_stack", "profile_memory")
"""Of torch.profiler, as the header names them."""

HOUR_US = 3600e6
_KINDS = (Kind.OPERATOR, Kind.REGION, Kind.API, Kind.KERNEL, Kind.COPY, Kind.SET, Kind.MODULE, Kind.PYTHON)
"""By the reader's categories (native/offline/events.h)."""


def read_kineto(source: Source, window_us: tuple[float, float] | None = None, *, python: bool = False) -> Trace:
    """The events of one rank.

    window_us: keep what overlaps this range of the file's own clock, so that memory is bounded by the range.
    python: with the calls of Python functions, which are most of a trace that was recorded `with_stack`.

    Raises TraceError when the file holds no events of the kinds that Leadline knows.
    """
    low, high = window_us or (-np.inf, np.inf)
    trace, _ = _read(source, low, high, python=python)
    if trace is None:
        if window_us:
            raise TraceError(
                f"{source.name} holds no operator, API call or kernel in the chosen window; choose another"
            )
        raise TraceError(f"{source.name} {refusal(source)}")
    return trace


def scan_marks(source: Source) -> tuple[Trace | None, int]:
    """Only the step marks of a trace, without keeping anything else; None where it has none. Also the size of the
    decompressed text in bytes."""
    return _read(source, -np.inf, np.inf, marks_only=True)


def _read(
    source: Source, low_us: float, high_us: float, *, marks_only: bool = False, python: bool = False
) -> tuple[Trace | None, int]:
    from leadline._events import EventReader

    reader = EventReader(low_us, high_us, marks_only, python)
    stream = source.open()
    try:
        text = TraceText(stream, source.name)
        text.through(reader)
    finally:
        stream.close()
    columns: dict[str, NDArray[Any]] = reader.events()
    row, track, at = reader.borders()
    kept, unpaired = paired(columns["ts"], columns["dur"], row, track, at, low_us)
    if not kept.all():
        columns = {name: values[kept] for name, values in columns.items()}
    return (_assemble(reader, columns, text, source, unpaired) if columns["ts"].size else None), text.bytes_read


def _assemble(reader: Any, columns: dict[str, NDArray[Any]], text: TraceText, source: Source, unpaired: int) -> Trace:
    ts, dur = columns.pop("ts"), columns.pop("dur")
    plausible, warnings, unread = _plausible(ts, dur)
    unread |= _lost((unpaired, 0.0), "a begin without an end, or an end without a begin,")
    unread |= _lost(reader.asynchronous, "on no thread (asynchronous)")
    warnings += text.damage
    unread |= _lost(reader.broken, "damaged") | _lost(reader.malformed, "without a field that they need")
    unread |= _left_out(unfamiliar := reader.unfamiliar())
    warnings += [*unread, *_taken(unfamiliar)]
    if not plausible.any():
        raise TraceError(f"{source.name} holds no event with a usable time; record it again")
    origin = float(ts[plausible].min())
    # the origin is taken off in microseconds first: a double holds today's date only to a quarter of one
    kept = np.flatnonzero(plausible)
    start = np.rint((ts[kept] - origin) * 1000).astype(np.int64)
    duration = np.rint(np.maximum(dur[kept], 0) * 1000).astype(np.int64)
    order = np.lexsort((-duration, start))
    chosen = kept[order]
    (columns["device"],) = _small(columns["device"])
    number, waiting, awaited, record = reader.syncs()
    columns["stream"], waiting, awaited = _small(columns["stream"], waiting, awaited)
    track = columns.pop("track")[chosen]
    names: list[str] = reader.names()
    columns["kind"] = _kinds(columns.pop("category"), columns["name"], names)
    events: dict[str, NDArray[Any]] = {
        name: values[chosen].astype(EVENT_COLUMNS[name], copy=False) for name, values in columns.items()
    }
    events["start_ns"], events["duration_ns"] = start[order], duration[order]
    for column in ("node", "step"):  # a trace of others has neither
        events[column] = np.full(order.size, -1, dtype=EVENT_COLUMNS[column])
    events["kind"] = settle(events, names, categories_tell=not reader.legacy).astype(EVENT_COLUMNS["kind"])
    has_sync_records = _add_synchronisations(events, number, waiting, awaited, record)
    header = text.header
    distributed = _mapping(header.get("distributedInfo"))
    threads = [Thread(0, process, tid, name) for process, tid, name in reader.threads()]
    labels = [threads[row].process if row >= 0 else -1 for row in range(-1, len(threads))]
    owner = number_launches(events, threads, [labels[row + 1] for row in track.tolist()] if (track >= 0).any() else [])
    return Trace(
        events=events,
        strings=names,
        details=json.loads(reader.details(), strict=False),
        threads=threads,
        devices=_devices(header),
        flows=_flows(origin, *reader.flows()),
        rank=_rank(distributed.get("rank")),
        world_size=max(_rank(distributed.get("world_size")), 0),
        source=source.name,
        origin_ns=_whole(header.get("baseTimeNanoseconds"), 0) + round(origin * 1000),
        complete=text.complete,
        warnings=tuple(warnings),
        unread=unread,
        facts={
            "has_sync_records": has_sync_records,
            "unknown_share": sum(left for _, _, left in unfamiliar) / max(ts.size, 1),
            "memory": _memory(origin, *reader.memory()),
            "distributed": distributed,
            "origin_us": origin,
            "program": owner,
            "recorder": {"name": "torch.profiler", **{name: bool(header.get(name)) for name in _OPTIONS}},
        },
    )


def _lost(found: tuple[int, float], what: str) -> dict[str, int]:
    """What to say about events that are left out, and how many: also how long they lasted if that can be read."""
    count, dur_us = found
    if not count:
        return {}
    lasted = f"{dur_us / 1e3:.6g} ms in all" if dur_us > 0 else "how long cannot be read"
    return {f"{count} {'event is' if count == 1 else 'events are'} {what} and left out ({lasted})": count}


def _kinds(category: NDArray[Any], name: NDArray[Any], names: list[str]) -> NDArray[Any]:
    """Kinds as far as the categories tell; calls by their names."""
    found: NDArray[Any] = np.array(_KINDS, dtype=np.uint8)[category]
    calls = found == Kind.API
    kind_of_call = np.zeros(len(names), dtype=np.uint8)
    for row in np.unique(name[calls]).tolist():
        kind_of_call[row] = call_kind(names[row])
    found[calls] = kind_of_call[name[calls]]
    return found


def _small(*columns: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Numbers of devices or streams in 32 bits: those that do not fit, such as pointers, become the first free ones,
    the same in all columns."""
    numbers = np.concatenate(columns)
    odd = (numbers >= 2**31) | (numbers < -1)
    if odd.any():
        known, place = np.unique(numbers[odd], return_inverse=True)
        numbers[odd] = int(numbers[~odd].max(initial=0)) + 1 + np.arange(known.size)[place]
    return np.split(numbers, np.cumsum([column.size for column in columns[:-1]]))


def _plausible(
    ts: NDArray[np.float64], dur: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], list[str], dict[str, int]]:
    """Which events can be used, and what is wrong with the others: remarks, and how many are left out by why. The clock
    is that of the bulk of the events: what lies more than an hour from all of them is from another one. A recording may
    take any number of hours itself, and a range in it as long as that."""
    warnings, unread = [], {}
    negative = int((dur < 0).sum())
    if negative:
        warnings.append(f"{_those(negative, 'has', 'have')} a negative duration, which counts as 0 ns")
    finite = np.isfinite(ts) & np.isfinite(dur)
    low, high = _bulk(ts[finite])
    near = finite & (ts >= low) & (ts <= high) & (np.where(finite, dur, 0.0) < high - low + HOUR_US)
    lost = int((finite & ~near).sum())
    if lost:
        which = _those(
            lost, "lies more than an hour from all others, or lasts", "lie more than an hour from all others, or last"
        )
        unread[f"{which} longer than all of them (a clock jump): left out"] = lost
    if not finite.all():
        lost = int((~finite).sum())
        unread[f"{_those(lost, 'has', 'have')} a time that is not a number: left out"] = lost
    return near, warnings, unread


def _those(number: int, one: str, several: str) -> str:
    return f"1 event {one}" if number == 1 else f"{number} events {several}"


def _bulk(ts: NDArray[np.float64]) -> tuple[float, float]:
    """From when to when the most events lie of those that follow one another within an hour."""
    if not ts.size:
        return 0.0, 0.0
    ordered = np.sort(ts)
    first = np.concatenate(([0], np.flatnonzero(np.diff(ordered) > HOUR_US) + 1))
    most = int(np.argmax(np.diff(first, append=ordered.size)))
    last = first[most + 1] if most + 1 < first.size else ordered.size
    return float(ordered[first[most]]), float(ordered[last - 1])


def _taken(found: list[tuple[str, int, int]]) -> list[str]:
    """What to say about events of categories that are not known and whose names told what they are. `found`: category,
    taken, left out."""
    taken = [(name, count) for name, count, _ in found if count]
    if not taken:
        return []
    names = ", ".join(f"{name!r}" for name, _ in taken)
    return [
        f"{sum(count for _, count in taken)} events have a category that is not known here ({names}); their names "
        "and numbers decide what they are"
    ]


def _left_out(found: list[tuple[str, int, int]]) -> dict[str, int]:
    """The same of those that nothing told of, and how many they are."""
    left = [(name, count) for name, _, count in found if count]
    if not left:
        return {}
    names, count = ", ".join(f"{name!r}" for name, _ in left), sum(count for _, count in left)
    return {
        f"{count} events have a category that is not known here ({names}), and nothing else identifies them; they "
        "are left out, and every range is wider by their share": count
    }


def _add_synchronisations(
    events: dict[str, NDArray[Any]],
    correlation: NDArray[Any],
    waiting: NDArray[Any],
    awaited: NDArray[Any],
    record: NDArray[Any],
) -> bool:
    """Fill the columns that say what a call waited for; whether there are such records."""
    count = events["start_ns"].size
    events["awaits"] = np.full(count, -1, dtype=np.int64)
    events["awaits_correlation"] = np.zeros(count, dtype=np.int64)
    # of several records with one number the last counts
    known, last = np.unique(correlation[::-1], return_index=True)
    last = correlation.size - 1 - last
    if known.size:
        place = np.searchsorted(known, events["correlation"]).clip(max=known.size - 1)
        rows = np.flatnonzero((known[place] == events["correlation"]) & (events["thread"] >= 0))
        source = last[place[rows]]
        events["awaits"][rows], events["awaits_correlation"][rows] = awaited[source], record[source]
        told = waiting[source] >= 0
        events["stream"][rows[told]] = waiting[source][told]
    return known.size > 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    """A number of the header, which may stand there as text, that fits into 64 bits; else the default."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,18}\s*", value):
        return int(value)
    return int(value) if isinstance(value, int | float) and abs(value) < 2**62 else default


def _rank(value: Any) -> int:
    """A number of a rank, or of ranks; -1 for what no job has."""
    found = _whole(value, -1)
    return found if 0 <= found < 2**31 else -1


def _flows(
    origin: float, number: NDArray[Any], finish: NDArray[Any], thread: NDArray[Any], ts: NDArray[Any]
) -> list[Flow]:
    """The arrows that have one beginning and one end, both on the clock of the others."""
    order = np.lexsort((finish, number))
    order = order[np.abs(ts[order] - origin) < HOUR_US]
    number, finish, thread = number[order], finish[order], thread[order]
    at = np.rint((ts[order] - origin) * 1000).astype(np.int64)
    fresh = np.append(np.flatnonzero(np.diff(number, prepend=number[:1] - 1)), number.size)
    first = fresh[:-1][np.diff(fresh) == 2]
    first = first[(finish[first] == 0) & (finish[first + 1] == 1)]
    return [
        Flow(*row)
        for row in zip(
            thread[first].tolist(), at[first].tolist(), thread[first + 1].tolist(), at[first + 1].tolist(), strict=True
        )
    ]


def _memory(
    origin: float, ts: NDArray[Any], size: NDArray[Any], device: NDArray[Any]
) -> tuple[tuple[int, int, int], ...]:
    near = np.abs(ts - origin) < HOUR_US
    at = np.rint((ts[near] - origin) * 1000).astype(np.int64)
    return tuple(zip(at.tolist(), size[near].tolist(), device[near].tolist(), strict=True))


def _devices(header: Mapping[str, Any]) -> list[Device]:
    found: list[Device] = []
    listed = header.get("deviceProperties", header.get("computeProperties"))  # the second up to torch 1.11
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        major, minor = (item.get(f"compute{part}", item.get(part.lower())) for part in ("Major", "Minor"))
        found.append(
            Device(
                index=number(item.get("id", len(found))),
                name=str(item.get("name", "")),
                memory_bytes=_whole(item.get("totalGlobalMem"), 0),
                compute_capability=f"{major}.{minor}" if major is not None else "",
                multiprocessors=_whole(item.get("numSms", item.get("multiProcessorCount")), 0),
                lanes=_whole(item.get("warpSize"), 0),
            )
        )
    return found


def number(value: Any) -> int:
    """The value, or the first number in a text such as "stream 7"; 0 without any."""
    if isinstance(value, int):
        return value
    found = re.search(r"-?\d+", str(value)) if isinstance(value, str | float) else None
    return int(found.group()) if found else 0
