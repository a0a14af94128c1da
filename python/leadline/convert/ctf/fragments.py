"""The metadata of CTF 2 (CTF2-SPEC-2.0): a sequence of JSON fragments, each after a record separator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.convert.ctf.layout import Fields, FieldType, Integer, Layout, StreamClass, Text, widths
from leadline.convert.ctf.packets import CONTEXT

_SEPARATOR = "\x1e"
_ROLES = {
    "timestamp_begin": "default-clock-timestamp",
    "timestamp_end": "packet-end-default-clock-timestamp",
    "content_size": "packet-content-length",
    "packet_size": "packet-total-length",
    "packet_seq_num": "packet-sequence-number",
    "events_discarded": "discarded-event-record-counter-snapshot",
}


def metadata(layout: Layout) -> bytes:
    """The file `metadata`."""
    return "".join(f"{_SEPARATOR}{json.dumps(one)}\n" for one in _fragments(layout)).encode()


def _fragments(layout: Layout) -> Iterator[dict[str, Any]]:
    yield {"type": "preamble", "version": 2, "uuid": list(layout.uuid.bytes)}
    clock = layout.clock
    yield {
        "type": "clock-class",
        "id": clock.name,
        "name": clock.name,
        "uid": str(clock.uuid),
        "description": clock.description,
        "frequency": 1_000_000_000,
        "origin": "unix-epoch",
        "offset-from-origin": {"seconds": clock.offset_ns // 10**9, "cycles": clock.offset_ns % 10**9},
    }
    header = {
        "magic": _fixed(Integer(32, base=16), "packet-magic-number"),
        "uuid": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]},
        "stream_id": _fixed(Integer(32), "data-stream-class-id"),
        "stream_instance_id": _fixed(Integer(64), "data-stream-id"),
    }
    yield {
        "type": "trace-class",
        "environment": dict(layout.environment),
        "packet-header-field-class": _structure(header),
    }
    for name, texts in layout.labels.items():
        mappings: dict[str, list[list[int]]] = {}
        for number, text in enumerate(texts):
            mappings.setdefault(text, []).append([number, number])
        for bits in sorted(widths(layout, name)):
            labelled = {**_fixed(Integer(bits)), "mappings": mappings}
            yield {"type": "field-class-alias", "name": f"{name}_{bits}", "field-class": labelled}
    for number, stream in enumerate(layout.streams):
        yield _stream(number, stream)
        for place, event in enumerate(stream.events):
            yield {
                "type": "event-record-class",
                "id": place,
                "data-stream-class-id": number,
                "name": event.name,
                "payload-field-class": _of_fields(event.fields),
            }


def _stream(number: int, stream: StreamClass) -> dict[str, Any]:
    packet = {name: _fixed(one, _ROLES.get(name, "")) for name, one in CONTEXT.items()}
    header = {
        "id": _fixed(Integer(16), "event-record-class-id"),
        "timestamp": _fixed(Integer(64), "default-clock-timestamp"),
    }
    return {
        "type": "data-stream-class",
        "id": number,
        "name": stream.name,
        "default-clock-class-id": "monotonic",
        "packet-context-field-class": _structure(packet),
        "event-record-header-field-class": _structure(header),
        "event-record-common-context-field-class": _of_fields(stream.context),
    }


def _of_fields(fields: Fields) -> dict[str, Any]:
    return _structure({name: _class(one) for name, one in fields.items()})


def _class(one: FieldType) -> dict[str, Any] | str:
    """A field class, or the name of the one that has the labels."""
    if isinstance(one, Text):
        return {"type": "static-length-string", "length": one.length, "encoding": "utf-8"}
    return f"{one.labels}_{one.bits}" if one.labels else _fixed(one)


def _fixed(one: Integer, role: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": f"fixed-length-{'signed' if one.signed else 'unsigned'}-integer",
        "length": one.bits,
        "alignment": 8,
        "byte-order": "little-endian",
        "preferred-display-base": one.base,
    }
    return {**found, "roles": [role]} if role else found


def _structure(members: Mapping[str, dict[str, Any] | str]) -> dict[str, Any]:
    listed = [{"name": name, "field-class": one} for name, one in members.items()]
    return {"type": "structure", "member-classes": listed}
