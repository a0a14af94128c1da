"""Part of `hotspot`: a class or function of a library that takes much of the step, though no one line of it does: a
distribution that is made, sampled and asked for its density on three lines, with its backward pass.

Counted is what the library does itself with all its operators. What it calls of the program, and modules, are not:
a trainer that holds the loop is no cost of its own. The framework's own optimizers, modules, loaders and functions of
tensors have other rules.
"""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.case import Group
from leadline.analysis.columns import Mask, Rows, at_rows, factorized, group_sums, nearest
from leadline.analysis.origin import Origin, package_path
from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.words import listed, operator
from leadline.analysis.scopes import frame_origins
from leadline.schema import FrameKind
from leadline.units import duration, percent

_OTHERS = re.compile(
    r"^(?:torch/(?:optim|nn/(?:modules|functional|parallel|utils)|utils|autograd|_dynamo|_functorch|_inductor|jit|fx|cuda"
    r"|amp|distributed|export|library|ao)/|torch/\w+\.py$|torch/nn/\w+\.py$|jax/|jaxlib/|flax/|tensorflow/|keras/|leadline/"
    r"|numpy/|threading\.py|contextlib\.py|functools\.py|runpy\.py|concurrent/|asyncio/)"
)
"""Files whose cost other rules name, or that run what somebody else wrote."""
_LEFT_OUT = ("optimizer", "data loading", "compile", "zero_grad", "saving")
_MOST_OF_A_LINE = 0.8
"""Of its time on one line: then the line says it, and its own facts."""
_INSTEAD = (
    (
        r"^torch/distributions/multivariate_normal\.py",
        "Give MultivariateNormal scale_tril, which avoids the Cholesky decomposition, or take "
        "Independent(Normal(mean, std), 1) where the covariance is diagonal.",
    ),
)
_CHECKS = (r"^torch/distributions/distribution\.py", ("Distribution.__init__", "Distribution._validate_sample"))
"""Below these torch compares values with what they may be, unless validate_args=False was passed."""
_UNCHECKED = "Pass validate_args=False, which drops its checks."
_WORTH_NAMING = 0.1
_LESS = "Call it once for all elements, keep what it makes, or write the few operators of it that the program needs."


def library_lines(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the class or function that takes most."""
    if case.has_device:
        return []
    tree, scopes = case.tree, case.analysis.scopes
    python = tree.kinds == int(FrameKind.PYTHON)
    whose = frame_origins(tree)[tree.frame_of]
    above = nearest(tree.shape, python | (tree.kinds == int(FrameKind.MODULE)))
    outer = at_rows(above, np.maximum(tree.shape.parent, 0))
    outer[:1] = -1
    entry = python & (whose > int(Origin.RUNTIME)) & (whose < int(Origin.USER)) & _counted_files(case)[tree.frame_of]
    entry &= (outer >= 0) & python[np.maximum(outer, 0)] & (at_rows(whose, outer) == int(Origin.USER))
    if not entry.any():
        return []
    stop = (python & (whose == int(Origin.USER))) | (tree.kinds == int(FrameKind.MODULE))
    for name in _LEFT_OUT:
        stop |= case.named(FrameKind.PHASE, name)
    inner = nearest(tree.shape, entry | stop)
    owner = np.where((inner >= 0) & entry[np.maximum(inner, 0)] & case.loop.inside, inner, -1)
    spent = case.time + np.where(scopes.inner < 0, case.samples, 0)
    own = group_sums(owner, spent, len(tree))
    for group in case.grouped(entry, own, _names(case)):
        share = case.share(group.value)
        if share < least:
            break
        lines = case.grouped(case.mask(group.rows) & entry, own, scopes.user)
        if len(lines) > 1 and lines[0].value < _MOST_OF_A_LINE * group.value:
            return [_finding(case, rule, learn_more, group, owner, [one.row for one in lines], spent)]
    return []


def _counted_files(case: Case) -> np.ndarray:
    frames, text = case.tree.frames, case.tree.tables.strings
    files = np.unique(frames["file"])
    kept = [row for row in files.tolist() if (path := package_path(text[row])) and not _OTHERS.match(path)]
    counted: np.ndarray = np.isin(frames["file"], np.array(kept, files.dtype))
    return counted


def _names(case: Case) -> Rows:
    """Per node a number of its file and class, or function."""
    frames, text = case.tree.frames, case.tree.tables.strings
    names = np.unique(frames["name"])
    words: dict[str, int] = {}
    number = {row: words.setdefault(text[row].partition(".")[0], len(words)) for row in names.tolist()}
    of_name = np.zeros(int(frames["name"].max(initial=0)) + 1, np.int64)
    of_name[names] = [number[row] for row in names.tolist()]
    return factorized(frames["file"].astype(np.int64), of_name[frames["name"]])[case.tree.frame_of]


def _checks(case: Case) -> Mask:
    file, names = _CHECKS
    found = np.zeros(len(case.tree), np.bool_)
    for row in np.flatnonzero(case.named(FrameKind.PYTHON, *names)).tolist():
        found[row] = re.match(file, package_path(case.tree.node(row).file)) is not None
    return case.below(found)


def _finding(
    case: Case, rule: str, learn_more: str, group: Group, owner: Rows, lines: list[int], spent: Rows
) -> Finding:
    ns, entries = group.value, group.rows
    node = case.tree.node(group.row)
    path = package_path(node.file)
    package = (path.rpartition("/")[0] or path.removesuffix(".py")).replace("/", ".")
    name = node.name.partition(".")[0]
    inside = np.isin(owner, entries) & (case.tree.kinds == int(FrameKind.OPERATOR))
    frames = case.tree.frames["name"][case.tree.frame_of[inside]]
    sums = {int(one): int(case.time[inside][frames == one].sum()) for one in np.unique(frames)}
    parts = sorted(sums, key=lambda one: -sums[one])[:3]
    of = [f"{operator(case.tree.tables.strings[one])} {percent(sums[one] / max(ns, 1))}" for one in parts if sums[one]]
    instead = next((words for pattern, words in _INSTEAD if re.match(pattern, path)), "")
    gain = case.at_most(ns, "bound: all that it does, forward and backward")
    checked = int(spent[np.isin(owner, entries) & _checks(case)].sum())
    if checked > _WORTH_NAMING * ns:
        if not instead:
            gain = case.gain(checked, (0.8, 0.9, 1), "operators of the checks")
        instead = f"{_UNCHECKED} {instead}".rstrip()
    return Finding(
        rule,
        Severity.WARNING if instead else Severity.INFO,
        f"{name} of {package} takes {percent(case.share(ns))} of the step, on {len(lines)} lines",
        gain,
        tuple(entries[:20].tolist()),
        case.lines(lines, 4),
        (f"{duration(case.per_step(ns))} a step", *((f"most of it in {listed(of)}",) if of else ())),
        instead or _LESS,
        learn_more,
        case.share(ns),
        of_place=bool(instead),
    )
