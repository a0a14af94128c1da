"""Part of `redundant_work`: results of which only a part is used, rows of one-hot numbers that pick rows of a matrix,
sparse matrices that are made dense to be multiplied, and what frozen modules say of inputs that come again.
"""

from __future__ import annotations

import ast
import re

import numpy as np

from leadline.analysis.calls_in_source import lines_that_call
from leadline.analysis.columns import group_sums, subtree_sums
from leadline.analysis.functions import function_of_line
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import shapes_of
from leadline.analysis.rules.last_logits import last_logits
from leadline.analysis.rules.recorded_in_vain import is_told
from leadline.schema import FrameKind
from leadline.units import duration, percent, size, times

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::matmul", "aten::linear", "aten::einsum")
_RANDOM = r"rand|bernoulli|dropout|multinomial|normal_|uniform_"
_EACH_BY_ITSELF = ("Linear",)
"""Classes that compute every position from itself alone."""
_FROZEN = 0.1
_WEIGHTS = ("load_state_dict", "parameters", "named_parameters", "state_dict")
"""Methods through which a program gives a model other weights."""


def partly_used(case: Case, rule: str, learn_more: str, share: float) -> list[Finding]:
    """At most one finding of each kind."""
    made = (
        _one_position(case, rule, learn_more, share),
        last_logits(case, rule, learn_more, share),
        _one_hot(case, rule, learn_more, share),
        _densified(case, rule, learn_more, share),
        _frozen(case, rule, learn_more),
    )
    return [one for one in made if one is not None]


def _one_position(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """A layer that treats each position by itself, whose result is only asked for one of them."""
    tree = case.tree
    names = tree.frames["module"][tree.frame_of]
    texts = {row: tree.tables.strings[row].rpartition(".")[2] for row in np.unique(names).tolist()}
    layers = np.isin(names, [row for row, text in texts.items() if text in _EACH_BY_ITSELF])
    layers &= (tree.kinds == int(FrameKind.MODULE)) & case.loop.inside
    for group in case.by_line(case.first_of(layers), case.cost_with_all_below)[:5]:
        part = group.value / max(case.cost_of_all, 1)
        if part < least:
            break
        place = tree.node(int(case.analysis.scopes.user[group.row]))
        source = case.sources.of(place.file) if origin(place.file) == Origin.USER else None
        function = source.function(place.line) if source else None
        asked = only_asked_for(function, place.line) if function is not None else ""
        if function is None or not is_of_several(case, place.file, function, asked, 3):
            continue
        if _inside_another(case, group.row):
            continue  # of a layer in the midst of a library's stack another one reads all positions
        return Finding(
            rule,
            Severity.WARNING,
            f"{case.name(group.row)} computes all positions, and only {asked} is used, {percent(part)} of "
            f"{case.cost_name}",
            case.gain_of(group.rows, group.value, (0.3, 0.9, 1), "bound: the layer, for all positions but one"),
            tuple(group.rows[:20].tolist()),
            case.lines([group.row]),
            (f"{duration(case.per_step(group.value))} a step in a layer that treats each position by itself",),
            "Select the position before the layer, not after it: layer(x[:, -1]) equals layer(x)[:, -1].",
            learn_more,
            part,
        )
    return None


def _inside_another(case: Case, row: int) -> bool:
    """Whether a module stands between a module and the user's line that leads to it."""
    path, user = case.tree.path_rows(row), int(case.analysis.scopes.user[row])
    return any(case.tree.kinds[at] == int(FrameKind.MODULE) for at in path[path.index(user) + 1 : -1])


def only_asked_for(function: ast.AST, line: int) -> str:
    """` scores[:, -1]` where the call on this line is kept in a name (or used at once) and nothing but one constant
    position of it is read in the function; empty otherwise."""
    names, direct = set(), ""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node.lineno == line and isinstance(node.value, ast.Call):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        if isinstance(node, ast.Subscript) and node.lineno == line and isinstance(node.value, ast.Call):
            direct = f"[{_text(node.slice)}]" if _is_position(node.slice) else ""
    if len(names) != 1:
        return direct if not names else ""
    (name,) = names
    read = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    stored = [node for node in read if isinstance(node.ctx, ast.Store)]
    parts = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name
    ]
    if len(stored) != 1 or not parts or len(parts) != len(read) - len(stored):
        return ""
    texts = {_text(node.slice) for node in parts}
    return f"{name}[{texts.pop()}]" if len(texts) == 1 and _is_position(parts[0].slice) else ""


def is_of_several(case: Case, file: str, function: ast.AST, asked: str, dimensions: int = 2) -> bool:
    """Whether the position is one of several, in a tensor of at least so many dimensions. `[:, 0]` also takes away a
    dimension of size 1, as behind nn.Linear(width, 1), or picks a column; where no shape tells, a last position, which
    is written as such, counts. False where nothing is asked for."""
    if not asked or case.known_loop is None:
        return "-" in asked
    first, last = getattr(function, "lineno", 1), getattr(function, "end_lineno", 1) or 1
    rows = np.flatnonzero(case.operators("aten::select") & case.lines_between(file, first, last))
    rows = rows[case.tree.parent[rows] == case.analysis.scopes.user[rows]]  # a library's own are others
    known = [shapes[0] for row in rows.tolist() if (shapes := shapes_of(case, row)) and len(shapes[0]) > 1]
    if not known:
        return "-" in asked
    return any(len(shape) >= dimensions and shape[1] > 1 for shape in known)


def _text(index: ast.expr) -> str:
    return ast.unparse(index).removeprefix("(").removesuffix(")")


def _is_position(index: ast.expr) -> bool:
    """`[:, -1]`: whole dimensions but one, of which a number is taken; not the first dimension, which is the batch."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    numbers = [place for place, one in enumerate(parts) if _is_number(one)]  # None adds a dimension, and reads all
    whole = [one for one in parts if isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None]
    return len(numbers) == 1 and numbers[0] == 1 and len(whole) == len(parts) - 1


def _is_number(index: ast.expr) -> bool:
    if isinstance(index, ast.UnaryOp):
        return _is_number(index.operand)
    return isinstance(index, ast.Constant) and type(index.value) is int


def _one_hot(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """One-hot rows on a line that multiplies with a matrix: a product that picks rows."""
    tree, backward = case.tree, case.in_phase("backward")
    made = case.operators("aten::one_hot") & ~backward
    if not made.any():
        return None
    line = case.code_line  # one of the user's may call a package that does both, far from each other
    products = case.first_of(case.operators(*_PRODUCTS) & ~backward & np.isin(line, line[made & (line >= 0)]))
    here = np.isin(line, line[np.flatnonzero(products)])
    rows = case.first_of(here & (case.called | products | made))
    for group in case.grouped(rows, case.cost_with_all_below, line)[:1]:
        share = group.value / max(case.cost_of_all, 1)
        if share < least:
            return None
        sizes = tree.exclusive("alloc_bytes")
        largest = int(sizes.max[case.mask(group.rows) & (sizes.count > 0)].max(initial=0))
        return Finding(
            rule,
            Severity.WARNING,
            f"Rows of a matrix are picked by multiplying it with one-hot rows, {percent(share)} of {case.cost_name}",
            case.gain_of(
                group.rows, group.value, (0.4, 0.85, 1), "bound: the one-hot rows, the product, its gradients"
            ),
            tuple(group.rows[:20].tolist()),
            case.lines([group.row]),
            (
                f"{duration(case.per_step(group.value))} a step; the largest of its tensors is {size(largest)}",
                *((f"in {by}",) if (by := case.made_by(group.row)) else ()),
            ),
            "Look them up: F.embedding(index, matrix), nn.Embedding or matrix[index] read the rows in use only.",
            learn_more,
            share,
        )
    return None


def _densified(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """A sparse matrix made dense in a function that multiplies: zeros are made, read and multiplied."""
    backward = case.in_phase("backward")
    made = case.operators("aten::to_dense") & ~backward & (case.code_line >= 0)
    if not made.any():
        return None
    function = function_of_line(case.tree, case.code_line)
    products = case.first_of(case.operators(*_PRODUCTS) & ~backward) & (function >= 0)
    rows = case.first_of(made | (products & np.isin(function, function[made])))
    groups = case.grouped(rows, case.cost_with_all_below, np.where(rows, function, -1))
    if not groups or (share := groups[0].value / max(case.cost_of_all, 1)) < least:
        return None
    group = groups[0]
    at = group.rows[made[group.rows]]
    number = case.per_step(float(case.calls[at].sum()))
    return Finding(
        rule,
        Severity.WARNING,
        f"A sparse matrix is made dense and multiplied as a dense one, {percent(share)} of {case.cost_name}",
        case.gain_of(group.rows, group.value, (0.3, 0.7, 1), "bound: the dense matrix, its products and gradients"),
        tuple(group.rows[:20].tolist()),
        case.lines([*at.tolist(), group.row], 2),
        (
            f"aten::to_dense {times(number)} a step; the dense matrix, its products and gradients take "
            f"{duration(case.per_step(group.value))} of it",
        ),
        "Multiply it as a sparse matrix: torch.sparse.mm(sparse, dense) reads and multiplies only the stored entries.",
        learn_more,
        share,
    )


def _frozen(case: Case, rule: str, learn_more: str) -> Finding | None:
    """Modules that nothing trains in a program that trains others. A note: whether inputs come again is not known."""
    tree = case.tree
    backward = case.named(FrameKind.PHASE, "backward")
    if not is_told(case) or not (backward & case.loop.inside).any():
        return None
    recorded = subtree_sums(tree.shape, tree.exclusive("recorded").sum)
    kinds = tree.kinds
    top = case.first_of((kinds == int(FrameKind.MODULE)) & case.loop.inside & ~case.in_phase("backward"))
    trained = np.isin(tree.frame_of, np.unique(tree.frame_of[top & (recorded > 0)]))
    owner = case.outermost(top)
    random = case.matching(FrameKind.OPERATOR, _RANDOM) & (case.calls > 0)
    draws = group_sums(owner, random.astype(np.int64), len(tree)) > 0
    frozen = top & (recorded == 0) & ~trained & ~draws
    for group in case.by_line(frozen, case.cost_with_all_below)[:1]:
        share = group.value / max(case.cost_of_all, 1)
        if share < _FROZEN:
            return None
        if _is_changed(case, case.name(group.row).partition(".")[0]):
            continue
        return Finding(
            rule,
            Severity.INFO,
            f"{case.name(group.row)} is not trained and computes the same in every step, {percent(share)} of "
            f"{case.cost_name}",
            case.gain_of(group.rows, group.value, (0, 0.5, 1), "estimate: all of it, if its inputs are known before"),
            tuple(group.rows[:20].tolist()),
            case.lines([max(int(tree.parent[group.row]), 0)]),
            ("autograd records nothing in it, and no operator in it draws random numbers",),
            "Compute its results once before training and keep them, if its weights do not change and inputs "
            "repeat (another epoch, the same texts).",
            learn_more,
            share / 2,
        )
    return None


def _is_changed(case: Case, name: str) -> bool:
    """Whether a loop of the program gives the model other weights: `target.load_state_dict(...)`, or a mean of those of
    another one."""
    for line in lines_that_call(case, _WEIGHTS, most=50):
        source = case.sources.of(line.file)
        if (
            source is not None
            and source.loops(line.line)
            and re.search(rf"\b{re.escape(name)}\.", source.text(line.line))
        ):
            return True
    return False
