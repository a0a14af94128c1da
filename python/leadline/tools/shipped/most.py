"""The kernel with the most of something, and its whole call path (`leadline run --most launches|accesses|EXPR`)."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.tools.batch import Batch
from leadline.tools.errors import ToolError
from leadline.tools.out import Out
from leadline.tools.tool import Tool, option

FIELDS = ("launches", "time", "accesses", "reads", "writes", "bytes")
_OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) != 0),
}


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Arithmetic over columns, such as bytes/launches; raises ToolError for anything else."""

    def walk(node: ast.AST) -> Any:
        match node:
            case ast.Expression():
                return walk(node.body)
            case ast.Name() if node.id in values:
                return values[node.id]
            case ast.Constant(value=int() | float()):
                return node.value
            case ast.BinOp() if type(node.op) in _OPERATIONS:
                return _OPERATIONS[type(node.op)](walk(node.left), walk(node.right))
        raise ToolError(f"Cannot read {text!r} of --most; write + - * / over {', '.join(values)}.")

    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        raise ToolError(f"Cannot read {text!r} of --most; write + - * / over {', '.join(values)}.") from None
    return walk(tree)


def check(texts: str) -> None:
    """Raise ToolError where one of the expressions cannot be read."""
    for text in texts.split(","):
        evaluate(text, dict.fromkeys(FIELDS, np.zeros(1)))


class Most(Tool):
    """The kernel with most launches, accesses or whatever an expression says, with its call path."""

    tool_name = "most"
    events = {"launch": ["kernel", "duration"], "touched": ["launch", "bytes", "reads", "writes"]}
    by = option(str, "launches", "launches, time, accesses, reads, writes, bytes, or arithmetic over them")
    rows = option(int, "5", "kernels listed")

    def start(self) -> None:
        check(self.by)
        self.of_kernel = self.sums(*FIELDS)
        self.where = self.counter()

    def launch(self, b: Batch) -> None:
        self.of_kernel.add(b["kernel"], launches=1, time=b["duration"])
        self.where.add(b["kernel"])

    def touched(self, b: Batch) -> None:
        kernel = self.launches.kernel[b["launch"]]
        reads, writes = np.asarray(b["reads"]), np.asarray(b["writes"])
        self.of_kernel.add(kernel, accesses=reads + writes, reads=reads, writes=writes, bytes=b["bytes"])

    def finish(self, out: Out) -> None:
        totals = self.of_kernel.totals()
        kernels = self.of_kernel.keys()
        if not len(kernels):
            return
        for text in self.by.split(","):
            value = np.broadcast_to(np.asarray(evaluate(text, totals), np.float64), kernels.shape)
            order = np.argsort(-value, kind="stable")[: self.rows].tolist()
            places = {at: self.where.first_place.get(int(kernels[at]), 0) for at in order}
            path = "\n    ".join(str(frame) for frame in self.places.path(places[order[0]]))
            out.text(f"most {text}", f"{self.names[kernels[order[0]]]} has most {text}; first launched at\n    {path}")
            rows = [{"kernel": self.names[kernels[at]], text: value[at], "from": out.path(places[at])} for at in order]
            out.table(f"most {text}", rows)
