"""Memory of TensorFlow's tensors and variables by the call path that made each.

Outputs of operations that run at once, outputs of functions, constants and variables are seen when they are made and,
by weak references, when the program lets go of them. Several tensors of one buffer (a reshape and its input) hold it
once. What nodes inside a graph use and give back is in no tensor of Python's: windows tell it (`tf_windows`).
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leadline.capture.native import Native
from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.tensorflow.runs import Key

SMALLEST = 64 * 1024
"""Bytes of the smallest tensor that is followed: smaller ones are many, hold little, and take less time to make than to
follow. Variables of every size are."""
_NEWS = 1.01
"""What was alive is kept anew when the sum has grown by a hundredth, so that peaks cost little while memory grows."""
_OF_VARIABLES = "ReadVariableOp"
"""Its output is the memory of a variable, which counts already."""
_SHARES = {"Bitcast", "DebugIdentity", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "PreventGradient"}
_SHARES |= {"Reshape", "Snapshot", "Squeeze", "StopGradient"}
"""Operations whose output is the memory of their input."""
VARIABLE = "tf.Variable"
CONSTANT = "tf.constant"


@dataclass
class Held:
    """Of one place, in bytes: made and given back."""

    made: int = 0
    made_bytes: int = 0
    smallest: int = 0
    largest: int = 0
    gone: int = 0
    gone_bytes: int = 0

    def add(self, size: int) -> None:
        """One more."""
        self.smallest = min(self.smallest, size) if self.made else size
        self.largest = max(self.largest, size)
        self.made += 1
        self.made_bytes += size


class _Buffer:
    """Memory that one or several tensors hold."""

    __slots__ = ("holders", "key", "size")

    def __init__(self, key: Key, size: int) -> None:
        self.key = key
        self.size = size
        self.holders = 1


class _Reference(weakref.ref[Any]):
    """To a tensor or variable, with what it holds and its number as an object."""

    __slots__ = ("buffer", "holder")
    buffer: _Buffer
    holder: int


class Memory:
    """Follows what is made; `at_peak`: number and bytes of what was alive at the peak, by place."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._lock = threading.RLock()  # a signal handler may make tensors while it is held
        self._replaced = Replacements()
        self._tensor_type: type | None = None
        self._context: Any = None
        self._only_host: bool | None = None
        self._sizes: dict[int, int] = {}
        """Bytes of an element by TensorFlow's number of its type."""
        self._holders: dict[int, _Reference] = {}
        """By the number of what is held: tensors cannot be hashed."""
        self._gone: deque[_Reference] = deque()
        """References to what the program let go of. They end on any thread and inside of anything, also while the lock
        is held, so they only leave word here."""
        self._live = 0
        self._kept_at = 0.0
        self.peak = 0
        self.held: dict[Key, Held] = {}
        self.at_peak: dict[Key, tuple[int, int]] = {}

    def install(self, modules: dict[str, Any]) -> bool:
        """Follow constants and variables too; `modules`: of the interpreter, by name. False where this release has
        none of what tensors are known by."""
        ops = modules.get("tensorflow.python.framework.ops")
        found = getattr(ops, "EagerTensor", None)
        if not isinstance(found, type) or not hasattr(found, "_num_elements"):
            return False
        self._tensor_type = found
        self._context = modules.get("tensorflow.python.eager.context")
        constants = vars(modules.get("tensorflow.python.framework.constant_op", ops))
        convert = constants.get("convert_to_eager_tensor")
        if callable(convert):
            self._replaced.everywhere("convert_to_eager_tensor", convert, self._converted(convert))
        variables = modules.get("tensorflow.python.ops.resource_variable_ops")
        variable = getattr(variables, "BaseResourceVariable", None)
        if isinstance(variable, type) and "__init__" in vars(variable):
            self._replaced.attribute(variable, "__init__", self._made_variable(vars(variable)["__init__"]))
        return True

    def uninstall(self) -> None:
        """Put everything back; what is alive is let go of without being counted as given back."""
        self._replaced.undo()
        with self._lock:
            self._settle()
            self._tensor_type = None
            self._holders = {}

    def made(self, key: Key, arguments: tuple[Any, ...], output: Any) -> None:
        """An operation or a function was given these and gave that."""
        if type(output) is self._tensor_type:
            self._made_one(key, arguments, output)
        elif type(output) is list:
            for one in output:
                if type(one) is self._tensor_type:
                    self._made_one(key, arguments, one)

    def _made_one(self, key: Key, arguments: tuple[Any, ...], tensor: Any) -> None:
        try:
            size = self._size(tensor)
            if size < SMALLEST or key[1] == _OF_VARIABLES:
                return
            if key[1] not in _SHARES:
                self._keep(_Buffer(key, size), tensor)
                return
            for one in _inputs(arguments):
                holder = self._holders.get(id(one)) if type(one) is self._tensor_type else None
                if holder is not None and holder() is one:
                    holder.buffer.holders += 1
                    self._refer(holder.buffer, tensor)
                    return
        except Exception:  # a resource, a variant: its elements are no numbers
            return

    def _size(self, tensor: Any) -> int:
        """Bytes of host memory; 0 for a tensor on another device."""
        kind = tensor._datatype_enum()
        each = self._sizes.get(kind)
        if each is None:
            each = self._sizes[kind] = int(tensor.dtype.size)
        size = int(tensor._num_elements()) * each
        if size < SMALLEST:
            return 0
        if self._only_host is None:
            devices = self._context.context().devices() if self._context is not None else [""]
            self._only_host = all("CPU:" in one for one in devices)
        return size if self._only_host or "CPU:" in tensor.device else 0

    def _converted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert_to_eager_tensor(value: Any, *arguments: Any, **named: Any) -> Any:
            made = original(value, *arguments, **named)
            if made is not value and type(made) is self._tensor_type:
                token = self._native.place()
                if token:
                    self._made_one((token, CONSTANT), (), made)
            return made

        return convert_to_eager_tensor

    def _made_variable(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(this: Any, *arguments: Any, **named: Any) -> None:
            original(this, *arguments, **named)
            try:
                token = self._native.place()
                size = _bytes_of_variable(this, self._tensor_type) if token else 0
                if size:
                    self._keep(_Buffer((token, VARIABLE), size), this)
            except Exception:  # one of a kind that is not known holds what it holds
                return

        return __init__

    def _keep(self, buffer: _Buffer, thing: Any) -> None:
        with self._lock:
            self._settle()
            held = self.held.get(buffer.key)
            if held is None:
                held = self.held[buffer.key] = Held()
            held.add(buffer.size)
            self._live += buffer.size
            if self._live > self.peak:
                self.peak = self._live
                if self._live >= self._kept_at:
                    self._remember()
            self._refer(buffer, thing)

    def _refer(self, buffer: _Buffer, thing: Any) -> None:
        reference = _Reference(thing, self._gone.append)
        reference.buffer, reference.holder = buffer, id(thing)
        self._holders[id(thing)] = reference

    def _remember(self) -> None:
        """Keep what is alive now."""
        self._kept_at = self._live * _NEWS
        self.at_peak = {
            place: (one.made - one.gone, one.made_bytes - one.gone_bytes)
            for place, one in self.held.items()
            if one.made_bytes > one.gone_bytes
        }

    def _settle(self) -> None:
        """With the lock held: count what has gone."""
        while self._gone:
            reference = self._gone.popleft()
            if self._holders.get(reference.holder) is reference:
                del self._holders[reference.holder]
            buffer = reference.buffer
            buffer.holders -= 1
            if buffer.holders:
                continue
            held = self.held[buffer.key]
            held.gone += 1
            held.gone_bytes += buffer.size
            self._live -= buffer.size


def _inputs(arguments: tuple[Any, ...]) -> list[Any]:
    """Of the fast path, whose inputs are arguments, and of the general one, where they are a list."""
    found: list[Any] = []
    for one in arguments:
        found += one if isinstance(one, list) else (one,)
    return found


def _bytes_of_variable(variable: Any, tensor_type: type | None) -> int:
    """0 for a variable of a graph that never was, or of a shape that is not known."""
    if not isinstance(variable.handle, tensor_type or ()):
        return 0
    elements = variable.shape.num_elements()
    return int(elements) * int(variable.dtype.size) if elements else 0
