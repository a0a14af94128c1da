"""Part of `redundant_work`: the head of a language model computes a score of each word for all positions, and the
program reads those of the last one."""

from __future__ import annotations

import ast
import re

import numpy as np

from leadline.analysis.calls_in_source import text_of
from leadline.analysis.columns import Rows
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import shapes_of
from leadline.schema import FrameKind
from leadline.units import duration, percent

_MODEL = re.compile(r"(?:ForCausalLM|LMHeadModel)$")
"""Classes of transformers that take `logits_to_keep`."""
_HEADS = ("lm_head", "embed_out")
_KEEPS = ("logits_to_keep", "num_logits_to_keep")


def last_logits(case: Case, rule: str, learn_more: str, least: float) -> Finding | None:
    """None where shapes were not recorded, or the source reads more."""
    tree, scopes = case.tree, case.analysis.scopes
    heads = (tree.kinds == int(FrameKind.MODULE)) & case.loop.inside
    heads &= np.array([name in _HEADS for name in _last_names(case)], np.bool_)[tree.frame_of]
    for group in case.by_line(case.first_of(heads), case.cost_with_all_below)[:3]:
        row = group.row
        model = next((at for at in tree.path_rows(row) if tree.kinds[at] == int(FrameKind.MODULE)), row)
        of_model = tree.text("module", int(tree.frame_of[model]))
        if scopes.user[model] != scopes.user[row] or not _MODEL.search(of_model):
            continue
        place = tree.node(int(scopes.user[row]))
        source = case.sources.of(place.file) if origin(place.file) == Origin.USER else None
        function = source.function(place.line) if source else None
        asked = only_last(function, place.line) if function is not None else ""
        ns, positions = _for_the_others(case, group.rows) if asked else (0, 0)
        share = case.share(ns)
        if share < least:
            continue
        return Finding(
            rule,
            Severity.WARNING,
            f"{case.name(row)} computes {positions} positions, and only {asked} is used, {percent(share)} of the step",
            case.gain_of(group.rows, ns, (0.5, 0.95, 1), "bound: the head, for all positions but the last"),
            tuple(group.rows[:20].tolist()),
            case.lines([row]),
            (f"{duration(case.per_step(ns))} a step for scores that nothing reads",),
            "Pass logits_to_keep=1 to the model: transformers then computes the head for the last position only.",
            learn_more,
            share,
        )
    return None


def _last_names(case: Case) -> list[str]:
    """Of each frame, the last part of its name."""
    texts = case.tree.tables.strings
    return [texts[int(name)].rpartition(".")[2] for name in case.tree.frames["name"].tolist()]


def _for_the_others(case: Case, rows: Rows) -> tuple[int, int]:
    """Time of the head that goes to positions before the last one, and how many there are (of the longest input)."""
    below = case.mask(rows) & case.operators("aten::linear", "aten::matmul")
    spent, most = 0.0, 0
    for row in np.flatnonzero(case.first_of(below)).tolist():
        shapes = shapes_of(case, row)
        if shapes and len(shapes[0]) == 3 and shapes[0][1] > 1:
            positions = int(shapes[0][1])
            spent += float(case.inclusive_time[row]) * (1 - 1 / positions)
            most = max(most, positions)
    return int(spent), most


def only_last(function: ast.AST, line: int) -> str:
    """`out.logits[:, -1]` where the model's call on this line is read for that and for nothing else of its logits;
    empty otherwise."""
    above = {id(below): node for node in ast.walk(function) for below in ast.iter_child_nodes(node)}
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.lineno == line]
    if not calls or any(one.arg in _KEEPS or one.arg is None for one in calls[0].keywords):
        return ""
    call = calls[0]  # the outermost
    over = above.get(id(call))
    if isinstance(over, ast.Attribute) and over.attr == "logits":
        kept = above.get(id(over))
        if isinstance(kept, ast.Subscript):
            return text_of(kept) if _is_last(kept.slice) else ""
        return _read(function, above, _name(kept), "")
    return _read(function, above, _name(over), "logits")


def _name(assign: ast.AST | None) -> str:
    targets = assign.targets if isinstance(assign, ast.Assign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _read(function: ast.AST, above: dict[int, ast.AST], name: str, attribute: str) -> str:
    """What is read of a name, or of one attribute of it, where that is one last position only."""
    texts: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        of: ast.AST = node
        if attribute:
            over = above.get(id(node))
            if not isinstance(over, ast.Attribute):
                return ""  # handed on as a whole
            if over.attr != attribute:
                continue
            of = over
        kept = above.get(id(of))
        if not isinstance(kept, ast.Subscript) or not _is_last(kept.slice):
            return ""
        texts.add(text_of(kept))
    return texts.pop() if len(texts) == 1 else ""


def _is_last(index: ast.expr) -> bool:
    """`[:, -1]`, `[:, -1, words]`, `[:, -1:]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    if len(parts) < 2 or not isinstance(parts[0], ast.Slice):
        return False
    part = parts[1]
    if isinstance(part, ast.Slice):
        if part.lower is None or part.upper is not None:
            return False
        part = part.lower
    try:
        return bool(ast.literal_eval(part) == -1)
    except ValueError:
        return False
