"""Of a line of the loop that not every step comes to: in how many steps it runs, and whether its work may be left out.

Evaluation, logging, checkpoints and metrics may run less often. A prefill, a refill of data and an episode's reset may
not: the program needs what they make.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.columns import Rows
from leadline.schema import FrameKind

_LEFT_OUT = frozenset(
    (
        *("eval", "evals", "evaluate", "evaluation", "evaluator", "val", "valid", "validate", "validation", "test"),
        *("logger", "logging", "wandb", "mlflow", "tensorboard", "writer", "print", "report", "summary", "stats"),
        *("save", "saving", "checkpoint", "checkpoints", "ckpt", "snapshot", "dump"),
        *("metric", "metrics", "accuracy", "bleu", "rouge", "fid", "monitor"),
        *("plot", "figure", "visualize", "visualise", "preview"),
    )
)
"""Words, in the names of what is called and of what says when."""
_LOGS = re.compile(r"log|log_\w*(?:metric|stat|scalar|image|dict|every|step|interval|freq)\w*")
"""`log` alone, unless it is a logarithm; `log_softmax` and `log_prob` are none."""
_LOGARITHMS = frozenset(("np", "numpy", "torch", "math", "jnp", "F", "tf"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def runs_of(case: Case, row: int) -> int:
    """How often the line of a node ran, where that is less often than the loop; 0 where it is not known."""
    line, steps = case.line(row), case.loop.steps
    source = case.sources.of(line.file) if line is not None else None
    every = source.every_nth(line.line) if source is not None and line is not None else 0
    number = steps // every if every > 1 else _calls(case, row)
    return number if number < steps else 0


def _calls(case: Case, row: int) -> int:
    """Of what the line itself calls: an operator, or the operators of a module, some of which run once."""
    tree, calls = case.tree, case.tree.exclusive("call_time").count
    counts = []
    below = tree.shape.children(row).tolist()
    while below:
        at = below.pop()
        if tree.kinds[at] == int(FrameKind.PHASE):
            below += tree.shape.children(at).tolist()
        elif tree.kinds[at] == int(FrameKind.OPERATOR) and calls[at]:
            counts.append(int(calls[at]))
        elif tree.kinds[at] == int(FrameKind.MODULE):
            inside: Rows = case.below_row(at)
            inside = inside[(tree.kinds[inside] == int(FrameKind.OPERATOR)) & (calls[inside] > 0)]
            counts.append(int(calls[inside].min(initial=np.iinfo(np.int64).max)))
    return min(counts, default=0)


def may_be_left_out(case: Case, row: int) -> bool:
    """Whether names say so: of what the line calls and is given, of the loop and the condition that it stands in."""
    if case.validation[row]:
        return True
    tree = case.tree
    called = [
        tree.text("name", int(tree.frame_of[one]))
        for one in tree.shape.children(row).tolist()
        if tree.kinds[one] == int(FrameKind.PYTHON)
    ]
    return any(_says_so(name) for name in (*called, *_names_at(case, row)))


def _says_so(name: str) -> bool:
    last = name.rpartition(".")[2]
    if _LOGS.fullmatch(last):
        return name.partition(".")[0] not in _LOGARITHMS
    words = {word.lower() for word in _WORD.findall(last)}
    return bool(words & _LEFT_OUT)


def _names_at(case: Case, row: int) -> Iterator[str]:
    """Names in the statement at the line, and in the conditions and heads of loops around it that not all steps are
    in."""
    line = case.line(row)
    source = case.sources.of(line.file) if line is not None else None
    function = source.function(line.line) if source is not None and line is not None else None
    if line is None or function is None:
        return
    for node in ast.walk(function):
        if not isinstance(node, ast.stmt) or not node.lineno <= line.line <= (node.end_lineno or node.lineno):
            continue
        head: ast.AST | None = None
        if isinstance(node, ast.If | ast.While):
            head = node.test
        elif isinstance(node, ast.For | ast.AsyncFor):
            head = node.iter
        elif not hasattr(node, "body"):
            head = node
        if head is None or (isinstance(node, ast.For | ast.While) and case.is_step_loop(line.file, node.lineno)):
            continue
        for one in ast.walk(head):
            if isinstance(one, ast.Attribute):
                yield ast.unparse(one)
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                yield one.id
