"""Full traces of TensorFlow 1 (`RunOptions.FULL_TRACE`): a serialized `RunMetadata`, or the `StepStats` of one.

Fields as in tensorflow/core/protobuf/config.proto and step_stats, graph, node_def and graph_debug_info of
tensorflow/core/framework. Times in nanoseconds are told since TensorFlow 1.9; before, microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.profiles.profile import Profile
from leadline.trace.importers.tf_nodes import Line, NodeRun, NodeTrace, labelled, profile_of
from leadline.trace.source import Source, whole_of
from leadline.trace.tables import TraceError
from leadline.trace.wire import Damaged, Fields, fields, text, whole

NAME = "a full trace of TensorFlow 1 (RunMetadata)"

_LARGEST = 2**31 - 1
"""Bytes that a message of protocol buffers can hold."""
_OF_TENSORFLOW = ("/tensorflow/python/", "/tensorflow/core/", "/keras/src/")
"""In paths of files between the program's lines and the node."""
_DEVICE_STATS = 0x0A
"""Key of field 1 with a length: of the step's statistics in the metadata, and of a device's in these."""


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: statistics of a device, which begin with its name."""
    inside = head
    for _ in range(2):  # `StepStats` are one message less deep than `RunMetadata`
        inside = _first(inside)
        name = _first(inside)
        if name.startswith(b"/") and b":" in name and len(name) < 512 and name.isascii():
            return True
    return False


def read(source: Source) -> Profile:
    """The profile of one call of a graph. Raises TraceError."""
    data = whole_of(source, _LARGEST, "which no message of TensorFlow can have")
    trace = NodeTrace()
    try:
        told = fields(data)
        is_metadata = not _is_device(next(iter(told.messages(1)), b""))
        steps = told.messages(1) if is_metadata else [data]
        graphs: dict[str, tuple[str, tuple[str, ...]]] = {}
        if is_metadata:
            functions = [fields(one) for one in told.messages(4)]
            for graph in [*told.messages(3), *(inner for one in functions for inner in one.messages(1))]:
                _read_graph(fields(graph), graphs, trace)
        for step in steps:
            for device in fields(step).messages(1):
                _read_device(fields(device), graphs, trace)
    except Damaged as error:
        raise TraceError(f"{source.name} is {NAME} that is damaged or cut off; copy the whole file again") from error
    return profile_of(trace, source.name, NAME)


def _is_device(message: bytes) -> bool:
    """Whether a message is the statistics of a device and not those of a step."""
    return _first(message).startswith(b"/")


def _first(message: bytes) -> bytes:
    """What the first field of a message holds, as far as it is there."""
    if message[:1] != bytes([_DEVICE_STATS]):
        return b""
    length = shift = 0
    for at in range(1, min(len(message), 11)):
        length |= (message[at] & 0x7F) << shift
        shift += 7
        if message[at] < 0x80:
            return message[at + 1 : at + 1 + length]
    return b""


def _read_device(device: Fields, graphs: dict[str, tuple[str, tuple[str, ...]]], trace: NodeTrace) -> None:
    name = text(device.last(1))
    for entry in device.messages(3):
        thread = fields(entry)
        trace.threads[whole(thread.last(1)) & 0xFFFFFFFF] = text(thread.last(2))
    for stats in device.messages(2):
        node = fields(stats)
        nanos = whole(node.last(13))
        start_ns = nanos or whole(node.last(2)) * 1000
        lasted_ns = whole(node.last(16)) if nanos else whole(node.last(5)) * 1000
        scheduled_ns = whole(node.last(17)) or whole(node.last(9)) * 1000
        label = text(node.last(8))
        plain = text(node.last(1))
        kind, inputs = labelled(label)
        known_kind, known_inputs = graphs.get(plain, ("", ()))
        trace.runs.append(
            NodeRun(
                name, plain, kind or known_kind, start_ns, lasted_ns,
                thread=whole(node.last(10)) & 0xFFFFFFFF,
                scheduled_ns=scheduled_ns or -1,
                inputs=inputs or known_inputs,
            )
        )  # fmt: skip


def _read_graph(graph: Fields, graphs: dict[str, tuple[str, tuple[str, ...]]], trace: NodeTrace) -> None:
    """Operations and inputs of the nodes, and the lines that made them where they are told."""
    for one in graph.messages(1):
        node = fields(one)
        inputs = tuple(text(name) for name in node.messages(3))
        graphs[text(node.last(1))] = (text(node.last(2)), inputs)
    for debug in graph.messages(5):
        trace.lines.update(_lines(fields(debug)))


def _lines(debug: Fields) -> dict[str, Sequence[Line]]:
    """Stacks of nodes by name, the outermost frame first, as they are told."""
    files = [text(one) for one in debug.messages(1)]

    def frame_of(message: bytes) -> Line:
        told = fields(message)
        file = whole(told.last(1))
        return (files[file] if 0 <= file < len(files) else "", max(whole(told.last(2)), 0), text(told.last(4)))

    frames = {key: frame_of(value) for key, value in _numbered(debug, 4)}

    def stack_of(message: bytes) -> list[Line]:
        told = fields(message)
        found = [frame_of(one) for one in told.messages(1)] or [
            frames[number] for number in told.integers(2) if number in frames
        ]
        return [frame for frame in found if not any(inner in frame[0] for inner in _OF_TENSORFLOW)]

    stacks = {key: stack_of(value) for key, value in _numbered(debug, 6)}
    found: dict[str, Sequence[Line]] = {}
    for entry in debug.messages(2):
        told = fields(entry)
        found[_node_of(text(told.last(1)))] = stack_of(next(iter(told.messages(2)), b""))
    for entry in debug.messages(5):
        told = fields(entry)
        number = whole(told.last(2))
        if number in stacks:
            found[_node_of(text(told.last(1)))] = stacks[number]
    return {node: stack for node, stack in found.items() if stack}


def _node_of(key: str) -> str:
    """Stacks are named `node@function`."""
    return key.partition("@")[0]


def _numbered(message: Fields, field: int) -> list[tuple[int, bytes]]:
    """Entries of a map by number; those keys have eight bytes."""
    found = []
    for entry in message.messages(field):
        told = fields(entry)
        found.append((whole(told.last(1)), next(iter(told.messages(2)), b"")))
    return found
