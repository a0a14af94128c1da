"""What a known call does that its name does not tell: an operator with a hidden cost, an iterator for one batch, a
permutation of all for a few, both branches of a condition below vmap."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from leadline.analysis.calls_in_source import name_of
from leadline.analysis.case import Case
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.by_shape import shapes_of
from leadline.analysis.rules.place.at import At, own_nodes, statement_at
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.rules.place.sizes import by_size
from leadline.schema import FrameKind

_OPERATORS = {
    "aten::embedding_renorm_": (
        "renormalises each row that is looked up, one by one, as max_norm asks",
        "Leave max_norm out of the embedding, and renormalise its weight once after the optimizer's step "
        "(weight.renorm_).",
    ),
    "aten::unique_dim": (
        "sorts whole rows to find equal ones, comparing them element by element",
        "Fold each row into one integer key, and call torch.unique on the keys without `dim`.",
    ),
    "aten::unique_consecutive": ("looks for runs of equal elements, and waits for their number", ""),
    "aten::_ctc_loss": ("computes CTC in plain loops over the sequence", ""),
    "aten::cdist_backward": ("writes the gradient of all pairs", ""),
    "aten::repeat_interleave": ("copies each element as often as asked, and waits for the number", ""),
    "aten::histc": ("counts values on one thread", ""),
}
"""What documentation or source of torch says of them; what to do instead."""
_LONG = {1: 128, 2: 15 * 15, 3: 7 * 7 * 7}
"""Elements of a window from which a convolution by FFT needs less work, by dimensions."""
_CHOICES = frozenset(("choice", "sample"))
_PERMUTES = frozenset(("randperm", "permutation"))
_BY_FFT = (
    "Convolve by FFT (multiply torch.fft.rfft of both and transform back), or use a shorter window: direct "
    "convolution takes time with the window's length."
)
_DERIVATIVES = {
    "jacfwd": "which computes it for each number of the input; jacrev does for each number of the result",
    "jacrev": "which computes its backward pass for each number of the result; jacfwd does for each of the input",
    "hessian": "which computes its gradient for each number of the input",
}
_ONE_ITERATOR = (
    "Make the iterator once before the loop (`batches = iter(loader)`), or loop over the loader itself: each new one "
    "shuffles all of the data and starts its workers again."
)
_DRAW = (
    "Draw with replacement (randint), or permute once for a whole pass and take slices: without replacement all "
    "elements are shuffled for each draw."
)
_OUTSIDE = (
    "Take the branch outside of vmap, on the whole batch (lax.cond(jnp.any(...), ...)), or make the expensive branch "
    "cheaper: below vmap a condition becomes a choice between two results."
)


def known_calls(case: Case, at: At) -> list[Fact]:
    """Nothing where neither shapes, names nor the source say so."""
    found = [
        *_of_operators(case, at),
        *_long_windows(case, at),
        *by_size(case, at),
        *_both_branches(at),
        *_derivatives(case, at),
    ]
    if at.statement is not None:
        nodes = own_nodes(at.statement)
        found += [*_new_iterators(nodes), *_permutations(nodes)]
    return found


def _of_operators(case: Case, at: At) -> Iterator[Fact]:
    """Of the operator, or of those that call it from the same line."""
    if not at.operator:
        return
    user = int(case.analysis.scopes.user[at.row])
    for row in case.tree.path_rows(at.row):
        if row > user and case.tree.kinds[row] == int(FrameKind.OPERATOR) and case.name(row) in _OPERATORS:
            words, instead = _OPERATORS[case.name(row)]
            yield Fact(
                "does", words if row == at.row else f"is what {case.name(row)} calls, which {words}", 0.8, instead
            )
            return


def _long_windows(case: Case, at: At) -> Iterator[Fact]:
    """A convolution whose window is so long that another algorithm needs less work."""
    for row in reversed(case.tree.path_rows(at.row)) if at.operator else ():
        name = case.name(row).rpartition("::")[2]
        shapes = shapes_of(case, row)
        place = (
            2 if name == "convolution_backward" else 1 if name in ("convolution", "conv1d", "conv2d", "conv3d") else 0
        )
        weight = shapes[place] if place and len(shapes) > place else ()
        window = weight[2:]
        if window and math.prod(window) >= _LONG.get(len(window), 1 << 62):
            size = " x ".join(f"{one:,}" for one in window)
            yield Fact("shape", f"convolves directly with a window of {size} elements", 0.8, _BY_FFT)
            return


def _new_iterators(nodes: list[ast.AST]) -> Iterator[Fact]:
    """`next(iter(loader))`."""
    for node in nodes:
        if isinstance(node, ast.Call) and name_of(node.func) == "next" and node.args:
            inner = node.args[0]
            if isinstance(inner, ast.Call) and name_of(inner.func) == "iter" and len(inner.args) == 1:
                text = ast.unparse(inner.args[0])
                yield Fact("does", f"makes a new iterator of {text} to take one item of it", 0.8, _ONE_ITERATOR)


def _permutations(nodes: list[ast.AST]) -> Iterator[Fact]:
    """`jax.random.choice(key, n, (k,), replace=False)`, `torch.randperm(n)[:k]`."""
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and isinstance(node.slice, ast.Slice):
            if name_of(node.value.func) in _PERMUTES and node.value.args and node.slice.upper is not None:
                of = ast.unparse(node.value.args[-1])
                yield Fact("reads", f"shuffles all of {of} to take the first", 0.8, _DRAW)
        elif isinstance(node, ast.Call) and name_of(node.func) in _CHOICES:
            replace = next((one.value for one in node.keywords if one.arg == "replace"), None)
            if isinstance(replace, ast.Constant) and replace.value is False and len(node.args) >= 1:
                of = ast.unparse(node.args[1 if len(node.args) > 1 and "key" in ast.unparse(node.args[0]) else 0])
                yield Fact("reads", f"shuffles all of {of} to draw without replacement", 0.8, _DRAW)


def _both_branches(at: At) -> Iterator[Fact]:
    """`jax.vmap(step)` where `step` has a lax.cond: at a line of the branches, or of the function with the vmap."""
    tree = at.source.tree if at.source is not None else None
    if tree is None or not at.compiled:
        return
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    mapped = {
        node.args[0].id: node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and name_of(node.func) == "vmap"
        and node.args
        and isinstance(node.args[0], ast.Name)
    }
    for name, vmap in mapped.items():
        for node in ast.walk(functions[name]) if name in functions else ():
            if not isinstance(node, ast.Call) or name_of(node.func) not in ("cond", "switch") or not _of_lax(node.func):
                continue
            branches = [
                functions[one.id] for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in functions
            ]
            around = [one for one in functions.values() if one.lineno <= vmap.lineno <= (one.end_lineno or 0)]
            if any(one.lineno <= at.line <= (one.end_lineno or 0) for one in (*branches, *around, functions[name])):
                text = (
                    f"computes all branches of {ast.unparse(node.func)} (line {node.lineno}), since it runs below vmap"
                )
                yield Fact("does", text, 0.75, _OUTSIDE)
                return


def _derivatives(case: Case, at: At) -> Iterator[Fact]:
    """Below `jax.jacfwd(f)(x)`: a pass for all numbers of the input at once, whatever the result is."""
    tree = case.tree
    for row in tree.path_rows(at.row):
        node = tree.node(row)
        if node.kind != str(FrameKind.PYTHON) or origin(node.file) != Origin.USER:
            continue
        statement = statement_at(case.sources.of(node.file), node.line)
        for one in own_nodes(statement) if statement is not None else ():
            if isinstance(one, ast.Call) and name_of(one.func) in _DERIVATIVES:
                text = f"runs below {name_of(one.func)} (line {node.line}), {_DERIVATIVES[name_of(one.func)]}"
                yield Fact("derivative", text, 0.75)
                return


def _of_lax(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and ast.unparse(called.value).endswith("lax")
