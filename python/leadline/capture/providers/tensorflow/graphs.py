"""Where the nodes of TensorFlow's graphs were made: the frames below the call of a `tf.function` for each node.

TensorFlow keeps with every operation of a graph the stack that made it. The part inside of the function counts: the
program's own lines, and where it has none there the innermost line of Keras. Name scopes are modules where Keras
opened them. What a gradient tape added stands on the lines of its forward node.
"""

from __future__ import annotations

import functools
import json
import re
import weakref
from collections.abc import Callable, Collection
from typing import Any

from leadline.capture.providers.replaced import Replacements
from leadline.capture.providers.tensorflow.calls import Calls
from leadline.xla.events import graph_scopes
from leadline.xla.parts import Frame

_INSIDE = "func_graph_from_py_func"
_GENERATED = "__autograph_generated_file"
_DEEPEST = 400
_GRADIENTS = ("gradient_tape/", "gradients/")

_COMMUNICATES = re.compile(r"^(?:Collective[A-Z]\w+|_?Nccl\w+|_(?:Host)?(?:Send|Recv))$")


def communicates(kind: str) -> bool:
    """Collectives of `tf.distribute`, and tensors that go from one device or process to another."""
    return _COMMUNICATES.match(kind) is not None


class Graphs:
    """Learns each function when TensorFlow makes it; keeps no graph alive."""

    def __init__(self, library: str) -> None:
        self._library = library
        """Folder of installed TensorFlow; Keras lies beside it."""
        self._keras = library.removesuffix("tensorflow/") + "keras/"
        self._replaced = Replacements()
        self._graphs: dict[str, Any] = {}
        self._operations: dict[str, dict[str, Any]] = {}
        self._calls = Calls(self._graph, self._of)
        self._inputs: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self._frames: dict[tuple[str, str, str], tuple[Frame, ...]] = {}
        self.nodes = 0
        self.without_line = 0

    def install(self, module: Any) -> bool:
        """Wrap what makes functions of graphs in `...polymorphic_function.atomic_function`."""
        original = vars(module).get("from_func_graph") if module is not None else None
        if original is None:
            return False
        self._replaced.everywhere("from_func_graph", original, self._wrapped(original))
        return True

    def uninstall(self) -> None:
        """Undo `install`."""
        self._replaced.undo()

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def make(name: Any, graph: Any, *arguments: Any, **named: Any) -> Any:
            made = original(name, graph, *arguments, **named)
            try:
                self._graphs[str(name)] = weakref.ref(graph)
                self._operations.pop(str(name), None)
            except TypeError:  # something else than a graph
                pass
            return made

        return make

    def frames(self, function: str, node: str, kind: str) -> tuple[Frame, ...]:
        """Frames of a node below the call of the function, its operator last."""
        key = (function, node, kind)
        known = self._frames.get(key)
        if known is None:
            known = self._frames[key] = tuple(self._made(function, node, kind))
        return known

    def _made(self, function: str, node: str, kind: str) -> list[Frame]:
        backward = next((node.find(mark) for mark in _GRADIENTS if mark in node), -1) >= 0
        forward = self._forward_of(function, node) if backward else node
        found = self._find(function, forward)
        scopes = graph_scopes(node)
        if found is not None and backward:  # in those of the node that it is the gradient of
            scopes = [*graph_scopes(forward), ("phase", "backward")]
        if found is None and backward:
            found = self._find(function, node)
        kept = self._kept(found) if found is not None else []
        # the line of Keras says something only where the program has none inside of the function
        stack = [one for one in kept if not one[0].startswith(self._keras)] or kept[-1:]
        self.nodes += 1
        self.without_line += not stack
        frames: list[Frame] = [("python", name, "", file, "", line, 0, 0) for file, name, line in stack]
        of_keras = any(file.startswith(self._keras) for file, _, _ in kept)
        optimizes = any("/optimizers/" in file for file, _, _ in kept)
        if optimizes and not backward:
            frames.insert(0, ("phase", "optimizer", "", "", "", 0, 0, 0))
        elif backward:
            frames.insert(0, ("phase", "forward", "", "", "", 0, 0, 0))
        path = ""
        for part, name in scopes:
            if part == "region" and of_keras and not optimizes:
                path = f"{path}.{name}" if path else name
                frames.append(("module", path, "", "", "", 0, 0, 0))
            else:
                frames.append((part, name, "", "", "", 0, 0, 0))
        facts = {"node": node}
        if (device := str(getattr(found, "device", "")).rpartition("device:")[2]) != "":
            facts["device"] = device
        if communicates(kind):
            facts["role"] = "communication"
        detail = json.dumps(facts)
        return [*frames, ("operator", kind, "", "", detail, 0, 0, 0)]

    def _forward_of(self, function: str, node: str) -> str:
        """`matmul` of `gradient_tape/matmul/MatMul`: the longest beginning of the path that is a node."""
        path = node
        for mark in _GRADIENTS:
            path = path.partition(mark)[2] or path
        parts = path.split("/")
        for end in range(len(parts) - 1, 0, -1):
            name = "/".join(parts[:end])
            if self._find(function, name, near=False) is not None:
                return name
        return path

    def _find(self, function: str, node: str, *, near: bool = True) -> Any:
        """The operation of that name; else one in the same scope, for nodes that TensorFlow's optimizer made."""
        found = self._calls.find(function, node) or self._named(function, node, 0 if near else 2)
        if found is not None or not near:
            return found
        parts = node.split("/")
        operations = self._of(function)
        for end in range(len(parts) - 1, 0, -1):
            scope = "/".join(parts[:end]) + "/"
            found = next((made for text, made in operations.items() if text.startswith(scope)), None)
            if found is not None:
                return found
        last = parts[-1].partition("-")[0]
        return operations.get(last)

    def _named(self, function: str, node: str, most: int = 0) -> Any:
        """The operation of that name: in the function's graph, else in any, where the names of calls in whose place it
        was put are left off; in its own graph all or `most` - 1 of them."""
        parts = node.split("/")
        for name in (function, *(one for one in self._graphs if one != function)):
            operations = self._of(name)
            for start in range(len(parts))[: most or None] if name == function else range(len(parts)):
                found = operations.get("/".join(parts[start:]))
                if found is not None:
                    return found
        return None

    def _graph(self, function: str) -> Any:
        known = self._graphs.get(function)
        return known() if known is not None else None

    def _of(self, function: str) -> dict[str, Any]:
        known = self._operations.get(function)
        if known is None:
            graph = self._graph(function)
            operations = graph.get_operations() if graph is not None else []
            known = {str(one.name): one for one in operations}
            self._operations[function] = known
        return known

    def _kept(self, operation: Any) -> list[tuple[str, str, int]]:
        """(file, function, line) inside of the function, outermost first, without TensorFlow itself."""
        try:
            whole = [(str(one.filename), str(one.name), int(one.lineno)) for one in operation.traceback][:_DEEPEST]
        except Exception:  # of another release
            return []
        inside = next((place for place, one in enumerate(whole) if one[1] == _INSIDE), -1)
        return [one for one in whole[inside + 1 :] if not one[0].startswith(self._library) and _GENERATED not in one[0]]

    def inputs(self, function: str, node: str, ran: Collection[str]) -> tuple[str, ...] | None:
        """See `Calls.inputs`."""
        key = (function, node)
        if key not in self._inputs:
            self._inputs[key] = self._calls.inputs(function, node, ran)
        return self._inputs[key]

    def forget(self) -> None:
        """Let go of operations, which hold their graphs."""
        self._operations.clear()
