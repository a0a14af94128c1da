"""The analyses that Trace Compass needs to draw a window of ours: lanes of what nests, and curves of amounts.

A file of its data-driven analyses ("Manage XML Analyses"): call stacks of threads and of queues of devices as patterns
that push at a begin and pop at an end, and state systems of memory, transfers and collectives, shown as XY charts.
Trace Compass shows fields of the context of CTF as `context._NAME`, and the label of an enumeration as its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from leadline.convert.ctf import allocators
from leadline.convert.ctf.layout import Layout, StreamClass

FILE = "trace-compass.xml"
_TRACE_TYPE = "org.eclipse.linuxtools.lttng2.ust.tracetype"
_SCHEMA = "http://www.w3.org/2001/XMLSchema-instance"
_VERSION = "1"
_BEGIN, _END = "_begin", "_end"
Element = ElementTree.Element


def analyses(layout: Layout) -> bytes:
    """The file for traces of this layout; it handles the events that there are."""
    ElementTree.register_namespace("xsi", _SCHEMA)
    root = Element("tmfxml", {f"{{{_SCHEMA}}}noNamespaceSchemaLocation": "xmlDefinition.xsd"})
    threads, queues, *more = layout.streams
    root.extend(_callstack("threads", "Leadline: threads", ("vpid", "vtid", "lane"), 1, threads))
    root.extend(_callstack("devices", "Leadline: devices", ("vpid", "device", "queue", "lane"), None, queues))
    root.extend(_curve("memory", "Leadline: memory of tensors", {"leadline:allocate": "total"}, threads, "device"))
    moved = {"leadline:copy_begin": "bytes", "leadline:set_begin": "bytes"}
    root.extend(_curve("transfers", "Leadline: bytes copied", moved, queues, "context._device", increment=True))
    sent = {"leadline:collective_begin": "bytes"}
    root.extend(_curve("network", "Leadline: bytes of collectives", sent, queues, "context._device", increment=True))
    for amounts in more:
        root.extend(_curve("allocators", "Leadline: allocators", {allocators.EVENT: "value"}, amounts, "name"))
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root) + b"\n"


def _callstack(
    word: str, title: str, levels: tuple[str, ...], thread: int | None, stream: StreamClass
) -> Iterator[Element]:
    """Spans of one stream class, by the fields of its context."""
    names = [event.name for event in stream.events if event.name.endswith((_BEGIN, _END))]
    if not names:
        return
    found = Element("callstack", {"id": f"leadline.{word}"})
    group = _child(found, "callstackGroup", name=title)
    for number in range(len(levels)):
        _child(group, "level", path=f"{word}/*" if number == 0 else "*")
    if thread is not None:
        _child(group, "thread", level=str(thread), type="name")
    pattern = _child(found, "pattern", version=_VERSION, id=f"leadline.{word}.spans")
    _head(pattern, title)
    place = _child(pattern, "location", id="stack")
    _attribute(place, "constant", word)
    for level in levels:
        _attribute(place, "eventField", f"context._{level}")
    _attribute(place, "constant", "CallStack")
    handler = _child(pattern, "patternHandler", initial="spans")
    for action, value in (
        ("push", {"type": "eventField", "value": "name", "stack": "push"}),
        ("pop", {"type": "null", "stack": "pop"}),
    ):
        change = _child(_child(handler, "action", id=action), "stateChange")
        _attribute(change, "location", "stack")
        _child(change, "stateValue", **value)
    machine = _child(handler, "fsm", id="spans", initial="following", multiple="false")
    state = _child(machine, "state", id="following")
    for name in names:
        action = "push" if name.endswith(_BEGIN) else "pop"
        _child(state, "transition", event=name, target="following", action=action)
    yield found


def _curve(
    word: str, title: str, fields: Mapping[str, str], stream: StreamClass, by: str, *, increment: bool = False
) -> Iterator[Element]:
    """A state system of an amount (`fields`: of which field in which event) and the chart of it. Amounts of single
    events are summed, and shown as differences."""
    known = {event.name for event in stream.events}
    handled = {name: field for name, field in fields.items() if name in known}
    if not handled:
        return
    provider = Element("stateProvider", {"id": f"leadline.{word}", "version": _VERSION})
    _head(provider, title)
    for name, field in handled.items():
        change = _child(_child(provider, "eventHandler", eventName=name), "stateChange")
        _attribute(change, "constant", word)
        _attribute(change, "eventField", by)
        more = {"increment": "true"} if increment else {}
        _child(change, "stateValue", type="eventField", value=field, forcedType="long", **more)
    yield provider
    view = Element("xyView", {"id": f"leadline.{word}.view"})
    head = _child(view, "head")
    _child(head, "analysis", id=f"leadline.{word}")
    _child(head, "label", value=title)
    entry = _child(view, "entry", path=f"{word}/*", displayType="delta" if increment else "absolute")
    _child(entry, "display", type="self")
    _child(entry, "name", type="self")
    yield view


def _head(above: Element, title: str) -> None:
    head = _child(above, "head")
    _child(head, "traceType", id=_TRACE_TYPE)
    _child(head, "label", value=title)


def _attribute(above: Element, kind: str, value: str) -> None:
    _child(above, "stateAttribute", type=kind, value=value)


def _child(above: Element, tag: str, **attributes: str) -> Element:
    return ElementTree.SubElement(above, tag, attributes)
