"""What a generated kernel was made of: the operators and the lines of the program that a compiler fused into it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

_MOST_SOURCES = 16
"""Lines kept per kernel: a fusion of more is no longer explained by a list."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n(?P<code>[^\n]*)')
_COMPUTED = (
    "flex_attention", "flex_attention_backward", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
    "aten::_scaled_mm", "aten::_grouped_mm", "aten::convolution", "mkldnn::_linear_pointwise", "mkl::_mkl_linear",
)  # fmt: skip
_ATEN_COMMENT = re.compile(r"Original ATen: \[(?P<names>[^\]]*)\]")


@dataclass(frozen=True)
class Source:
    """A line of the program that went into a kernel."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Work:
    """A graph node that a kernel computes itself, as an operator's detail has it: shapes and types of its inputs."""

    operator: str
    shapes: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Origin:
    """What a kernel was made of: operators such as `aten.relu`, and lines, both in the order of the graph. `work`: the
    product, convolution or attention that it computes where it was made from a template, not element by element."""

    operators: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    work: tuple[Work, ...] = ()

    def joined(self, other: Origin) -> Origin:
        """Both, each entry once: kernels of one name in several graphs cannot be told apart later."""
        operators = tuple(dict.fromkeys((*self.operators, *other.operators)))
        sources = tuple(dict.fromkeys((*self.sources, *other.sources)))[:_MOST_SOURCES]
        alone = self.work == other.work or not self.work or not other.work
        return Origin(operators, sources, (self.work or other.work) if alone else ())

    def detail(self) -> str:
        """JSON object for the node's detail; empty when nothing is known."""
        if not self.operators and not self.sources:
            return ""
        sources = [{"file": s.file, "line": s.line, "function": s.function, "code": s.code} for s in self.sources]
        found: dict[str, Any] = {"operators": list(self.operators), "sources": sources}
        if self.work:
            found["work"] = [asdict(one) for one in self.work]
        return json.dumps(found)


def origin_of_nodes(nodes: Iterable[Any]) -> Origin:
    """From the scheduler's nodes that one kernel fuses, through their graph nodes."""
    nodes = list(nodes)
    operators: dict[str, None] = {}
    sources: dict[Source, None] = {}
    for origin in graph_nodes(nodes):
        aten = origin.meta.get("original_aten")
        packet = getattr(aten, "_overloadpacket", aten)
        if packet is not None:
            operators[str(packet)] = None
        source = innermost_source(str(origin.meta.get("stack_trace") or getattr(origin, "stack_trace", None) or ""))
        if source is not None:
            sources[source] = None
    templates = [node for node in nodes if _is_template(getattr(node, "node", None))]
    work = tuple(work_of(node) for node in graph_nodes(templates) if _operator(node.target) in _COMPUTED)
    return Origin(tuple(operators), tuple(sources)[:_MOST_SOURCES], work)


def _is_template(buffer: Any) -> bool:
    """Whether Inductor made the kernel of this buffer from a template, so that no library's operator is called.

    Origins do not tell that: a kernel that only adds a product's bias has the product among them too."""
    return any(kind.__name__ == "TemplateBuffer" for kind in type(buffer).__mro__)


def work_of(node: Any) -> Work:
    """Of a graph node, from the stand-ins that the compiler has traced with; symbolic sizes by their hint."""
    shapes: list[tuple[int, ...]] = []
    types: list[str] = []
    for argument in node.args:
        value = getattr(argument, "meta", {}).get("val")
        sizes = getattr(value, "shape", ())
        shapes.append(tuple(int(getattr(getattr(size, "node", None), "hint", size) or 0) for size in sizes))
        types.append(str(getattr(value, "dtype", "")).removeprefix("torch."))
    arguments = tuple(argument if _is_plain(argument) else None for argument in node.args)
    return Work(_operator(node.target), tuple(shapes), tuple(types), arguments)


def _is_plain(value: Any) -> bool:
    """Whether it is a number, or a list of them: stride, padding and so on."""
    return isinstance(value, int) or (isinstance(value, list | tuple) and all(isinstance(one, int) for one in value))


def _operator(target: Any) -> str:
    """`aten::mm` for torch.ops.aten.mm.default, `flex_attention` for the higher-order operator."""
    return str(getattr(target, "_overloadpacket", target)).replace(".", "::")


def graph_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """The graph nodes behind scheduler nodes, in the order of their graph, each once."""
    found: dict[Any, None] = {}
    for node in nodes:
        origins = getattr(getattr(node, "node", None), "origins", None) or ()
        found.update(dict.fromkeys(origins))
    calls = [node for node in found if getattr(node, "op", "") == "call_function"]
    positions: dict[Any, int] = {}
    for node in calls:
        if node.graph not in positions:
            positions[node.graph] = len(positions)
    order = {node: number for graph in positions for number, node in enumerate(graph.nodes)}
    yield from sorted(calls, key=lambda node: (positions[node.graph], order.get(node, 0)))


def innermost_source(stack_trace: str) -> Source | None:
    """The last frame of a stack trace as the graph keeps it: the program's own line."""
    frames = list(_FRAME.finditer(stack_trace))
    if not frames:
        return None
    last = frames[-1]
    return Source(last["file"], int(last["line"]), last["function"].strip(), last["code"].strip())


def origin_of_generated(kernel: str, text: list[str], linemap: list[tuple[int, str | None]]) -> Origin:
    """From a generated module: the comment above the kernel's call, and the line map for its call. For cached code."""
    operators: dict[str, None] = {}
    sources: dict[Source, None] = {}
    for number, line in enumerate(text, start=1):
        if not re.search(rf"\b{re.escape(kernel)}(\.run)?\(", line):
            continue
        comment = next((found for above in reversed(text[max(0, number - 4) : number - 1])
                        if (found := _ATEN_COMMENT.search(above))), None)  # fmt: skip
        if comment is not None:
            operators.update(dict.fromkeys(name.strip() for name in comment["names"].split(",") if name.strip()))
        trace = next((trace for first, trace in reversed(linemap) if first <= number), None)
        source = innermost_source(trace or "")
        if source is not None:
            sources[source] = None
    if not operators:
        operators.update(dict.fromkeys(operators_of_name(kernel)))
    return Origin(tuple(operators), tuple(sources)[:_MOST_SOURCES])


def operators_of_name(kernel: str) -> list[str]:
    """The operators that a fused kernel's name lists: `cpp_fused_add_relu_0` gives aten.add and aten.relu.

    Names run together (`_softmax_add` may be `_softmax` and `add`), so words are only split, never interpreted.
    """
    found = re.search(r"fused_(?P<names>.*?)_\d+$", kernel)
    return [f"aten.{word}" for word in found["names"].split("_") if word] if found else []
