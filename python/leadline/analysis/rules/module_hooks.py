"""Part of `logging_in_loop`: hooks of modules and tensors that compute statistics in every step."""

from __future__ import annotations

import ast
import re

import numpy as np

from leadline.analysis.calls_in_source import hooks_of, user_trees
from leadline.analysis.columns import Mask, subtree_sums
from leadline.analysis.functions import function_of_line
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_NEEDED = re.compile(r"comm_hook|state_dict|pack")
"""Of hooks, those without which the program would do something else."""
_READS = ("item", "tolist", "numpy", "cpu", "detach", "detach_")


def module_hooks(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the hook that takes most, where no gradient goes through it."""
    tree, kinds = case.tree, case.tree.kinds
    parent = np.maximum(tree.shape.parent, 0)
    python = kinds == int(FrameKind.PYTHON)
    entered = python & case.loop.inside & ~python[parent] & (kinds[parent] != int(FrameKind.THREAD))
    entered = case.first_of(entered & _named_hooks(case, entered))
    if not entered.any():
        return []
    of_function = function_of_line(tree, np.where(entered, np.arange(len(tree)), -1))
    recorded = subtree_sums(tree.shape, np.where(case.in_phase("backward"), 0, tree.exclusive("recorded").sum))
    for group in case.grouped(entered, case.cost_with_all_below, of_function):
        python_ns = case.python_ns(case.mask(group.rows))
        share = (group.value + python_ns) / max(case.cost_of_all, 1)
        if group.value < least * case.cost_of_all:
            break
        place = tree.node(group.row)
        hook = case.sources.of(place.file)
        function = hook.function(place.line) if hook else None
        if function is None or _changes_something(function, recorded=bool(recorded[group.rows].any())):
            continue
        calls = case.per_step(float(case.calls[case.below(case.mask(group.rows))].sum()))
        return [
            Finding(
                rule,
                Severity.WARNING,
                f"The hook {place.name} computes in every step, {percent(min(share, 1))} of {case.cost_name}",
                case.gain_of(group.rows, group.value, (0.7, 0.95, 1), "bound: what runs in the hook"),
                tuple(group.rows[:20].tolist()),
                case.lines([group.row]),
                (
                    f"{times(calls)} operators a step in the hook, {duration(case.per_step(group.value))}; "
                    "no gradient goes through them",
                ),
                "Remove the hook (`handle.remove()`) where its results are not needed, or compute them every hundredth "
                "step only.",
                learn_more,
                share,
            )
        ]
    return []


def _named_hooks(case: Case, entered: Mask) -> Mask:
    """Python frames whose function the program's own files register as a hook."""
    tree = case.tree
    used = np.unique(tree.frame_of[entered])
    names = {name for _, parsed in user_trees(case) for name, by in hooks_of(parsed).items() if not _NEEDED.search(by)}
    hooks = [
        frame
        for frame in used.tolist()
        if origin(tree.text("file", frame)) == Origin.USER and names & set(tree.text("name", frame).split("."))
    ]
    found: Mask = np.isin(tree.frame_of, hooks)
    return found


def _changes_something(function: ast.AST, *, recorded: bool) -> bool:
    """Whether the model computes something else without the hook: it returns a value in place of what it was given, or
    autograd records it and its results are not only read as numbers."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Return) and node.value is not None for node in nodes):
        return True
    return recorded and not any(isinstance(node, ast.Attribute) and node.attr in _READS for node in nodes)
