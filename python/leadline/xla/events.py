"""What an event of XLA's and TensorFlow's profiler is, by its name. Pure functions of text.

Formats: tsl/profiler/lib/traceme.h (names), tsl/profiler/utils/tf_op_utils.cc (`node:Type`, `Iterator::...`),
xla/python/profiler/internal/python_hooks.cc (`$file:line function`).
"""

from __future__ import annotations

import re
from enum import IntEnum

from leadline._dataclass import dataclass


class Event(IntEnum):
    """Meaning of an event on a host thread."""

    RUNTIME = 0  # of the framework's own runtime
    PYTHON = 1  # a call of a Python function
    BUILTIN = 2  # a call of a function that is not written in Python
    CALL = 3  # a compiled function is called: `PjitFunction(f)`
    NODE = 4  # a node of a graph, or an operation run at once
    PIPELINE = 5  # a stage of tf.data
    RANGE = 6  # of the program: TraceAnnotation, tf.profiler.experimental.Trace
    ALLOCATE = 7
    FREE = 8
    MARK = 9  # tells something of others and takes no time of its own
    PASSES = 10  # of the runtime, only handing on to what is inside
    WAITS = 11  # a thread waits for others


@dataclass(frozen=True)
class Named:
    """`name`: as a person reads it; `scope`: of a node, its path in the graph without the last part."""

    event: Event
    name: str
    scope: str = ""


_PYTHON = re.compile(r"^\$(?P<file>[^\s:]*\.py|<[^>]*>|[^\s:]+):(?P<line>\d{1,9}) (?P<function>.+)$", re.DOTALL)
_CALL = re.compile(r"^(?:PjitFunction|PmapFunction)\((?P<name>.*)\)$", re.DOTALL)
_NODE = re.compile(r"^(?P<path>[A-Za-z0-9._][\w.\\/>-]*):(?P<type>[A-Z_]\w*)$")
_EAGER = re.compile(r"^(?:EagerLocalExecute|EagerExecute|EagerRemoteExecute|EagerKernelExecute): (?P<type>\w+)$")
_FUNCTION = re.compile(r"^EagerLocalExecute: __(?:inference|forward|backward)_(?P<name>.+?)(?:_\d+)*$")
_MARKS = re.compile(r"^(?:end: |ThreadpoolListener::|ExecutorDoneCallback$)")
_PASSES = re.compile(
    r"^(?:EagerExecute|EagerKernelExecute|TFE_Py_\w+|KernelAndDeviceFunc::Run|ExecutorState::Process"
    r"|ThunkExecutor::Execute|FunctionRun|EagerCopyToDevice|ValidateInputTypeAndPlacement)$"
)
"""What only hands on to what is inside."""
_WAITS = re.compile(r"\(wait for completion\)$|::(?:Await|BlockUntilReady|BlockHostUntil\w+)$")
_STAGE = re.compile(r"^(?:Iterator::.*|[A-Z][A-Za-z]*(?:Produce|Consume|InitializeInput))$")
_RUNTIME = re.compile(
    r"::|^(?:cu|cuda|hip|nccl|rccl)[A-Z]|^(?:RunGraph|SessionRun|TraceContext|XlaModule:|Thunk:|TFE_|Eager[A-Z]\w*$)"
)
REGION_BEGINS, REGION_ENDS = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"
"""Around what a thread of a pool does for another thread; neither lasts."""


def named(text: str) -> Named:
    """What an event of a host thread is that names nothing else in its statistics."""
    if text.startswith("$"):
        return _python(text)
    if _MARKS.match(text):
        return Named(Event.MARK, text)
    if text == "MemoryAllocation":
        return Named(Event.ALLOCATE, text)
    if text == "MemoryDeallocation":
        return Named(Event.FREE, text)
    if (call := _CALL.match(text)) is not None:
        return Named(Event.CALL, f"jit({call['name']})")
    if _STAGE.match(text):
        return Named(Event.PIPELINE, text)
    if (function := _FUNCTION.match(text)) is not None:
        return Named(Event.CALL, f"tf.function({function['name']})")
    if (eager := _EAGER.match(text)) is not None:
        return Named(Event.NODE, eager["type"])
    if "::" not in text and (node := _NODE.match(text)) is not None:
        return Named(Event.NODE, node["type"], node["path"])
    if _PASSES.match(text):
        return Named(Event.PASSES, text)
    if _WAITS.search(text):
        return Named(Event.WAITS, text)
    if _RUNTIME.search(text):
        return Named(Event.RUNTIME, text)
    return Named(Event.RANGE, text)


def _python(text: str) -> Named:
    return Named(Event.PYTHON if _PYTHON.match(text) else Event.BUILTIN, text)


def python_frame(text: str) -> tuple[str, int, str]:
    """File, line of the definition and name of the function."""
    found = _PYTHON.match(text)
    return ("", 0, text) if found is None else (found["file"], int(found["line"]), found["function"])


_CALLS_INSIDE = ("StatefulPartitionedCall", "PartitionedCall")
_GRADIENTS = ("gradient_tape", "gradients")


def graph_scopes(path: str) -> list[tuple[str, str]]:
    """Kinds and names of the frames that a node's path in its graph stands for, without the node itself: its name
    scopes as regions. Prefixes of functions that were put in place of their calls are left out. What a gradient tape
    added runs backward, in the scopes of the forward node that it is the gradient of."""
    parts = [part for part in path.split("/") if part]
    if parts and parts[-1] in _CALLS_INSIDE:
        return []
    kept = [part for part in parts[:-1] if part.partition("_")[0] not in _CALLS_INSIDE]
    backward = bool(kept) and kept[0] in _GRADIENTS
    frames = [("region", part) for part in (kept[1:] if backward else kept)]
    return [*frames, ("phase", "backward")] if backward else frames
