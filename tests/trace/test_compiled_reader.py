"""The compiled reader of traces against Python's json: on every shared trace, and on made ones that hold what JSON may
hold, in pieces of any size."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leadline._events import EventReader
from tests.trace.plain_reader import PlainReader

from leadline.trace.source import sources

TRACES = Path(__file__).parents[3] / "shared" / "traces"
FILES = sorted(path for path in TRACES.rglob("*.json*") if path.is_file()) + sorted(TRACES.rglob("*.tar.gz"))


def compiled(text: bytes, piece: int, *, python: bool = False) -> EventReader:
    """Reads the inside of an array with its closing bracket."""
    reader = EventReader(python=python)
    for at in range(0, len(text), piece):
        if reader.feed(text[at : at + piece], False):
            return reader
    assert reader.feed(b"", True)
    return reader


def told(reader: EventReader) -> dict[str, Any]:
    """What the compiled reader says, in the plain one's words."""
    columns, names, details = reader.events(), reader.names(), json.loads(reader.details())
    threads = [(process, tid) for process, tid, _ in reader.threads()]
    rows = zip(*(columns[name].tolist() for name in (
        "ts", "dur", "category", "name", "thread", "device", "stream", "correlation", "sequence", "forward_thread",
        "bytes", "detail")), strict=True)  # fmt: skip
    flows = zip(*(column.tolist() for column in reader.flows()), strict=True)
    return {
        "events": [(*row[:3], names[row[3]], threads[row[4]] if row[4] >= 0 else None, *row[5:11],
                    details[row[11]] if row[11] >= 0 else {}) for row in rows],
        "flows": [("f" if finish else "s", threads[thread], at) for _, finish, thread, at in flows],
        "syncs": [tuple(row) for row in zip(*(column.tolist() for column in reader.syncs()), strict=True)],
        "memory": [tuple(row) for row in zip(*(column.tolist() for column in reader.memory()), strict=True)],
        "thread_names": sorted((str(process), tid, name) for process, tid, name in reader.threads() if name),
        "malformed": reader.malformed[0],
        "legacy": reader.legacy,
    }  # fmt: skip


def expected(events: list[Any], *, python: bool = False) -> dict[str, Any]:
    plain = PlainReader(python=python).read(events)
    return {
        "events": plain.events, "flows": [row[1:] for row in plain.flows], "syncs": plain.syncs,
        "memory": plain.memory, "thread_names": sorted((str(key[0]), key[1], name) for key, name in plain.thread_names.items() if name),
        "malformed": plain.malformed, "legacy": plain.legacy,
    }  # fmt: skip


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    # NaN is no equal of itself and its text is; a detail of a NaN as well
    assert one.keys() == other.keys()
    for key in one:
        assert repr(one[key]) == repr(other[key]), key


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shared_traces_are_read_as_by_python(path: Path) -> None:
    for source in sources(path)[:2]:
        stream = source.open()
        text = stream.read()
        stream.close()
        content = json.loads(text)
        if not isinstance(content, list) and "traceEvents" not in content:
            return  # an execution trace or a table beside the timelines
        events = content if isinstance(content, list) else content["traceEvents"]
        array = text.index(b"[", 0 if isinstance(content, list) else text.index(b'"traceEvents"'))
        reader = EventReader()
        assert reader.feed(text[array + 1 :], True)
        assert not reader.damaged
        same(told(reader), expected(events))


NUMBERS = st.one_of(
    st.integers(-5, 2000), st.floats(0, 1e6).map(lambda value: round(value, 3)), st.floats(),
    st.sampled_from([2**31, 2**32 - 1, 2**53 + 1, 2**62, 2**63, 2**64 - 1, -(2**63), 10**30, 1e300, -0.0]),
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["aten::mm", "nn.Module: Linear_0", "ProfilerStep#3", "stream 7", "thread -12 x", "17", "1.5", "",
                     "\ud83d\ude00", "\ud83d", "\x00\x1f\u2028", 'quote " \\ back', "}, {", "[memory]"]),
    st.text(st.characters(), max_size=8),
)  # fmt: skip
SCALARS = st.one_of(NUMBERS, TEXTS, st.none(), st.booleans())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["Sequence number", "Fwd thread id", "correlation", "device", "stream", "bytes", "wait_on_stream",
                     "wait_on_cuda_event_record_corr_id", "name", "Bytes", "Device Type", "Input Dims", "grid", "other"]),
    st.one_of(NUMBERS, VALUES), max_size=5,
)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "X", "X", "s", "f", "M", "i", "B"]),
     "cat": st.sampled_from(["cpu_op", "Operator", "cuda_runtime", "Kernel", "gpu_memcpy", "cuda_sync",
                             "python_function", "fwdbwd", "user_annotation", "Trace", "gpu_op"])},
    optional={"name": st.one_of(TEXTS, TEXTS, st.just("thread_name"), SCALARS), "ts": NUMBERS, "dur": NUMBERS,
              "pid": st.one_of(st.just(1), SCALARS), "tid": st.one_of(st.just(1), SCALARS), "id": SCALARS,
              "args": st.one_of(ARGUMENTS, ARGUMENTS, VALUES), "more": VALUES},
)  # fmt: skip


@given(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, VALUES), max_size=6), st.integers(1, 60), st.booleans(),
       st.sampled_from([None, 1]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_made_traces_are_read_as_by_python(events: list[Any], piece: int, escaped: bool, indent: int | None) -> None:
    text = json.dumps(events, ensure_ascii=escaped, indent=indent)
    reader = compiled(text.encode("utf-8", "replace")[1:], piece, python=escaped)
    assert not reader.damaged
    same(told(reader), expected(json.loads(text.encode("utf-8", "replace")), python=escaped))


def test_digits_of_an_escape_are_no_number() -> None:
    text = '{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"pid":1,"tid":"\\ud83d\\ude00 worker 7"}]'
    assert told(compiled(text.encode(), 5))["events"][0][4] == (1, 7)


def test_of_two_members_with_one_name_the_last_counts() -> None:
    text = '{"ph":"i","ph":"X","cat":"kernel","cat":"cpu_op","name":"a","name":"b","ts":1,"ts":2.5,"pid":1,"tid":2,'
    text += '"args":{"Sequence number":1},"args":{"Sequence number":2,"Sequence number":3},"\\u0064ur":4}]'
    assert told(compiled(text.encode(), 7))["events"] == [(2.5, 4.0, 0, "b", (1, 2), -1, -1, 0, 3, -1, 0, {})]


GOOD = '{"ph":"X","cat":"cpu_op","name":"good","ts":1,"dur":1,"pid":1,"tid":1}'
DAMAGE = (
    '{"ph":"X",}', '{"ph":"X" "cat":1}', '{"ph":[1,]}', '{"ph":{"a":1,}}', "{'ph':1}", '{"ph":1]', '{"ph"}',
    '{"ph":' + "[" * 300 + "]" * 300 + "}", '{"ph":[1 2]}', '{"ph":{"a" 1}}', '{"ph":{1:2}}',
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("piece", [3, 10_000])
def test_damage_costs_only_what_is_damaged(damage: str, piece: int) -> None:
    if "[" * 300 not in damage:  # that one is JSON to Python, and too deep for a trace
        with pytest.raises(json.JSONDecodeError):
            json.loads(damage)
    reader = compiled(f"{GOOD},{damage},{GOOD}]".encode(), piece)
    assert reader.damaged
    assert [row[3] for row in told(reader)["events"]] == ["good", "good"]


@pytest.mark.parametrize(
    "value",
    ["N/A", "n/a", "nan", "-nan", "inf", "-inf", "None", "True", "01", "1.", "+1", ".5", "1e", "tru", "0x7f", "-nan(ind)",
     "undefined", '"\\x"', '"\\u12G4"', "[1, nan]", '{"a": N/A}'],
)  # fmt: skip
@pytest.mark.parametrize("piece", [3, 10_000])
@pytest.mark.parametrize("key", ["est. achieved occupancy %", "nobody needs it", "bytes"])
def test_a_value_that_is_no_json_costs_itself_only(value: str, piece: int, key: str) -> None:
    kernel = f'{{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":7,"pid":0,"tid":7,"args":{{"{key}":{value},"grid":[2,1,1]}}}}'
    reader = compiled(f"{GOOD},{kernel},{GOOD}]".encode(), piece)
    assert not reader.damaged and reader.malformed == (0, 0.0)
    found = told(reader)["events"]
    assert [(row[3], row[1]) for row in found] == [("good", 1.0), ("k", 7.0), ("good", 1.0)]
    assert found[1][-1] == (
        {"grid": [2, 1, 1]} if "\\" in value or key != "est. achieved occupancy %" else found[1][-1]
    )


@pytest.mark.parametrize("first", ["ph", "name", "args", "cat", "ts", "dur", "pid"])
@pytest.mark.parametrize("piece", [7, 10_000])
@pytest.mark.parametrize("spaced", [True, False])
def test_damage_costs_one_event_whatever_key_events_begin_with(first: str, piece: int, spaced: bool) -> None:
    """An event cut in its middle; the loss says how long it lasted."""

    def event(name: str, dur: float) -> str:
        plain = {
            "ph": "X",
            "cat": "cpu_op",
            "name": name,
            "ts": 1,
            "pid": 1,
            "tid": 1,
            "dur": dur,
            "args": {"a": {"name": 1}, "l": [{"b": 1}]},
        }
        return json.dumps({first: plain[first], **plain}, indent=1 if spaced else None)

    broken = event("b", 12.5).replace(": 1.0", ": 1").replace('"pid": 1', '"pid": 1 oops "')
    reader = compiled(f"{event('a', 4)},{broken},{event('c', 4)},{event('d', 4)}]".encode(), piece)
    assert [row[3] for row in told(reader)["events"]] == ["a", "c", "d"]
    assert reader.damaged and reader.broken == (1, 12.5)


def test_numbers_that_are_no_json_are_read() -> None:
    text = '{"ph":"X","cat":"cpu_op","name":"a","ts":NaN,"dur":-Infinity,"pid":1,"tid":1}]'
    ((ts, dur, *_),) = told(compiled(text.encode(), 5))["events"]
    assert math.isnan(ts) and dur == -math.inf


def test_an_event_without_an_end_costs_no_more_than_its_limit() -> None:
    reader = EventReader()
    assert not reader.feed(b'{"ph":"X","name":"', False)
    for _ in range(9):
        assert not reader.feed(b"x" * (1 << 20), False)
    assert reader.damaged
    assert reader.feed(b'",' + GOOD.encode() + b"]", True)
    assert [row[3] for row in told(reader)["events"]] == ["good"]
