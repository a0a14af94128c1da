"""The analyses for Trace Compass: what its schema allows, and what they make of a trace when they are carried out."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from samples import two_machines, with_allocator
from test_ctf import window, write_ctf

from leadline.convert.ctf import tracecompass
from leadline.profiles.builder import ProfileBuilder
from leadline.trace.ctf import CtfEvent, open_ctf

ALLOWED = {  # tag: (required attributes, further ones, order of children), by Trace Compass's six schema files
    "tmfxml": (
        "",
        "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation",
        "(callstack|stateProvider|xyView|)*",
    ),
    "callstack": ("id", "", "callstackGroup pattern "),
    "callstackGroup": ("", "name", "(level )*(thread )?(host )?"),
    "level": ("path", "", ""),
    "thread": ("", "cpu level type", ""),
    "pattern": ("version id", "", "(head )?(storedField )*(definedValue )*(location )*(mappingGroup )*patternHandler "),
    "head": ("", "", "((traceType )*|(analysis )*)(label )?"),
    "traceType": ("id", "", ""),
    "analysis": ("id", "ssid", ""),
    "label": ("", "value", ""),
    "location": ("id", "", "(stateAttribute )*"),
    "patternHandler": ("", "initial", "((test |action )*(fsm )+)+"),
    "action": ("id", "", "(stateChange |segment |action )+"),
    "fsm": ("id", "initial multiple consuming", "(precondition )*(initial )?(state )*(final )?(transition )*"),
    "state": ("id", "automatic", "(state )*(final )?(transition )*"),
    "transition": ("", "event cond target action", ""),
    "stateChange": ("", "", "(stateAttribute )+stateValue (futureTime )?"),
    "stateAttribute": ("type", "value", "(stateAttribute )*"),
    "stateValue": ("type", "value stack forcedType increment update mappingGroup", ""),
    "stateProvider": ("id version", "", "(head )?((definedValue |location |mappingGroup )*(eventHandler )+)+"),
    "eventHandler": ("eventName", "", "(stateChange )+"),
    "xyView": ("id", "", "(head )?entry "),
    "entry": ("path", "displayType", "(display )?(name )?"),
    "display": ("type", "value reference", ""),
    "name": ("type", "value reference", ""),
}
VALUES = {
    ("stateAttribute", "type"): "null constant eventField eventName location query pool",
    ("stateValue", "type"): "null int long string eventField eventName delete query script",
    ("stateValue", "stack"): "pop popAll push peek",
    ("stateValue", "forcedType"): "int long string double",
    ("entry", "displayType"): "absolute delta",
    ("display", "type"): "constant location query self",
    ("thread", "type"): "name value",
}


def complaints(element: ElementTree.Element) -> Iterator[str]:
    """What the schema does not allow."""
    tag = element.tag
    if tag not in ALLOWED:
        yield f"there is no element {tag}"
        return
    required, further, children = ALLOWED[tag]
    for name in set(required.split()) - set(element.attrib):
        yield f"{tag} needs {name}"
    for name in set(element.attrib) - set(required.split()) - set(further.split()):
        yield f"{tag} has no attribute {name}"
    for name, value in element.attrib.items():
        if (tag, name) in VALUES and value not in VALUES[tag, name].split():
            yield f"{tag} cannot have {name}={value}"
    order = "".join(f"{child.tag} " for child in element)
    if tag != "tmfxml" and not re.fullmatch(children, order):
        yield f"{tag} cannot hold {order}"
    for child in element:
        yield from complaints(child)


def field(event: CtfEvent, name: str) -> str:
    """As Trace Compass finds it: a field of the context has a prefix."""
    inside = event.context if name.startswith("context._") else event.payload
    return str(inside[name.removeprefix("context._")])


def path(change: ElementTree.Element, event: CtfEvent, places: dict[str, list[ElementTree.Element]]) -> tuple[str, ...]:
    found: list[str] = []
    for one in change.findall("stateAttribute"):
        if one.get("type") == "location":
            for each in places[one.attrib["value"]]:
                found.append(
                    each.attrib["value"] if each.get("type") == "constant" else field(event, each.attrib["value"])
                )
        else:
            found.append(one.attrib["value"] if one.get("type") == "constant" else field(event, one.attrib["value"]))
    return tuple(found)


def drawn(root: ElementTree.Element, events: list[CtfEvent]) -> list[tuple[str, int, int]]:
    """(name, begin, end) of every bar that the call stacks draw."""
    bars = []
    for pattern in root.iter("pattern"):
        places = {one.attrib["id"]: list(one) for one in pattern.findall("location")}
        actions = {one.attrib["id"]: one for one in pattern.iter("action")}
        moves = {one.attrib["event"]: actions[one.attrib["action"]] for one in pattern.iter("transition")}
        stacks: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
        for event in events:
            if event.name not in moves:
                continue
            change = moves[event.name].find("stateChange")
            value = change.find("stateValue")
            stack = stacks[path(change, event, places)]
            if value.get("stack") == "push":
                stack.append((field(event, value.attrib["value"]), event.time_ns))
            else:
                name, begin = stack.pop()
                bars.append((name, begin, event.time_ns))
        assert not any(stacks.values())
    return bars


def curves(root: ElementTree.Element, events: list[CtfEvent]) -> dict[tuple[str, ...], list[int]]:
    """The values of every attribute of the state systems in order of time."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for provider in root.findall("stateProvider"):
        handlers = {one.attrib["eventName"]: one for one in provider.findall("eventHandler")}
        for event in events:
            if event.name in handlers:
                change = handlers[event.name].find("stateChange")
                value = change.find("stateValue")
                values = found[path(change, event, {})]
                amount = int(field(event, value.attrib["value"]))
                values.append(amount + (values[-1] if value.get("increment") and values else 0))
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ctf(two_machines(), tmp_path_factory.mktemp("tc") / "out")


def test_the_file_is_what_the_schema_allows(exported: Path) -> None:
    files = list(exported.rglob(tracecompass.FILE))
    assert len(files) == 2, "one for each machine"
    for file in files:
        root = ElementTree.fromstring(file.read_bytes())
        assert list(complaints(root)) == []
        ids = [one.attrib["id"] for one in root]
        assert len(ids) == len(set(ids))


def test_a_misspelt_element_is_refused(exported: Path) -> None:
    text = next(exported.rglob(tracecompass.FILE)).read_text()
    for right, wrong in (("<fsm ", "<fms "), ('stack="push"', 'stack="put"'), ("<level path=", "<level to=")):
        changed = re.sub(f"</{right[1:-1]}>", f"</{wrong[1:-1]}>", text) if right == "<fsm " else text
        assert list(complaints(ElementTree.fromstring(changed.replace(right, wrong))))


def test_carried_out_on_a_trace_they_draw_every_span(tmp_path: Path) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")
    rows = [
        ("main", "outer", 0, 900),
        ("main", "inner", 100, 50),
        ("main", "inner", 200, 300),
        ("other", "outer", 50, 100),
    ]
    rows += [("main", "overlaps", 850, 100)]  # ends after what it began in: another lane
    folder = write_ctf(window(rows), tmp_path / "out")
    root = ElementTree.fromstring((folder / tracecompass.FILE).read_bytes())
    events = list(open_ctf(folder / "ust", "ust").events())
    first = min(event.time_ns for event in events)
    bars = sorted((name, begin - first, end - begin) for name, begin, end in drawn(root, events))
    assert bars == sorted((name, begin, took) for _, name, begin, took in rows)


def test_curves_follow_memory_and_copies(tmp_path: Path) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=7, start_ns=100)
    thread, device = builder.thread(process, "main", tid=70), builder.device(process, 0)
    node = builder.node_of_thread(thread)
    for at, size in ((10, 100), (20, 50), (30, -100)):
        builder.event("allocate", node, at, 0, thread=thread, bytes=size)
    copy = builder.child(node, builder.frame("copy", "Memcpy HtoD (Pageable -> Device)"))
    for at, size in ((40, 7), (60, 5)):
        builder.event("copy", copy, at, 5, device=device, stream=3, bytes=size)
    profile = builder.profile()
    profile.meta["processes"] = [{"pid": 7, "started_at_ns": 100, "clock": {"monotonic_ns": 0, "realtime_ns": 10**18}}]
    folder = write_ctf(profile, tmp_path / "out")
    root = ElementTree.fromstring((folder / tracecompass.FILE).read_bytes())
    found = curves(root, list(open_ctf(folder / "ust", "ust").events()))
    assert found == {("memory", "-1"): [100, 150, 50], ("transfers", "0"): [7, 12]}


def test_curves_of_allocators_have_one_line_for_each_amount(tmp_path: Path) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("reading CTF needs the program babeltrace2 (Debian: babeltrace2)")
    profile = with_allocator(window([("main", "outer", 0, 900)]))
    folder = write_ctf(profile, tmp_path / "out")
    root = ElementTree.fromstring((folder / tracecompass.FILE).read_bytes())
    assert list(complaints(root)) == []
    found = curves(root, list(open_ctf(folder / "ust", "ust").events()))
    assert found == {
        ("allocators", "torch's allocator: bytes in use"): [5, -3],
        ("allocators", "torch's allocator: blocks in use"): [1, 2],
    }
