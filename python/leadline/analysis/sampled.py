"""Which functions of the program took the CPU time that no operator explains, by samples (`leadline run --cpu-sample`).

A sample counts for the innermost function of the user's (else of an installed package's) on its path, with what that
function called of the standard library (`copy.deepcopy` of a model, with what that calls), NumPy and native code. Not
for it: what runs below the framework's own Python (torch's modules and optimizers), and a line that calls operators and
takes little for each, which is calling them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, at_rows, factorized, group_sums, nearest, subtree_sums
from leadline.analysis.functions import METRIC
from leadline.analysis.origin import Origin, is_called_as_function, is_dispatch, origin
from leadline.analysis.scopes import Scopes, frame_origins, outermost
from leadline.analysis.wrappers import without_wrappers
from leadline.profiles import Tree
from leadline.schema import FrameKind
from leadline.units import percent

_INNER = re.compile(r"(?:\.<locals>)?\.<(?:genexpr|listcomp|setcomp|dictcomp|lambda)>")
_CALLING_NS = 50_000.0
"""Python around one operator takes 5 to 30 µs; a line that takes more for each does something else besides."""


@dataclass(frozen=True)
class SampledFunction:
    """`row`: the node of its line with most of its time; `rows`: all nodes with samples; `ns`: their sum; `name`: of
    the function; `called`: what ran most below that line, by name and share of `ns` (empty where it was itself)."""

    row: int
    rows: Rows
    ns: int
    name: str
    called: tuple[tuple[str, float], ...]


def sampled_functions(tree: Tree, scopes: Scopes, where: Mask, operators: Mask, most: int) -> list[SampledFunction]:
    """The functions with most CPU time in `where`, the largest first. `operators`: calls that count as the line's."""
    samples = np.where(where, tree.exclusive(METRIC).sum, 0)
    if not samples.any():
        return []
    mine = np.where(_own(tree, scopes, samples > 0), samples, 0)
    user_nodes = np.where(mine > 0, scopes.user, -1)
    at_line = group_sums(user_nodes, mine, len(tree))
    calls = subtree_sums(tree.shape, np.where(operators, tree.exclusive("call_time").count, 0))
    busy = at_line > _CALLING_NS * calls
    mine = np.where((at_rows(busy, user_nodes, 0) > 0) | _below_standard_library(tree, scopes), mine, 0)
    rows = np.flatnonzero(mine)
    if not len(rows):
        return []
    function = function_of_frame(tree)[tree.frame_of]
    found, group = np.unique(function[scopes.user[rows]], return_inverse=True)
    sums = group_sums(group, mine[rows], len(found))
    return [
        _made(tree, scopes, rows[group == one], mine, int(sums[one]))
        for one in np.argsort(-sums, kind="stable")[:most].tolist()
    ]


def _own(tree: Tree, scopes: Scopes, sampled: Mask) -> Mask:
    """Sampled nodes outside operators whose innermost code is the program's own, or what that called directly."""
    whose = frame_origins(tree)
    files = np.unique(tree.frames["file"])
    opaque = [row for row in files.tolist() if not is_called_as_function(tree.tables.strings[row])]
    framework = (whose == int(Origin.FRAMEWORK)) & np.isin(tree.frames["file"], np.array(opaque, np.int64))
    framework &= tree.frames["kind"] == int(FrameKind.PYTHON)
    inner = nearest(tree.shape, framework[tree.frame_of])
    depth = tree.shape.depth
    hidden = (inner >= 0) & (at_rows(depth, inner) > at_rows(depth, scopes.user))
    user = at_rows(whose[tree.frame_of], scopes.user)
    hidden &= ~_below_standard_library(tree, scopes)
    own: Mask = sampled & (scopes.inner < 0) & (user >= int(Origin.PACKAGE)) & ~hidden
    return own


_WRAPPERS = re.compile(r"/(?:contextlib|functools|typing|inspect|enum|abc|weakref|warnings|threading)\.py$")
"""Modules of the standard library whose functions run what somebody else wrote."""


def _below_standard_library(tree: Tree, scopes: Scopes) -> Mask:
    """Nodes where the first Python frame below the user's line is the standard library's: what that calls is work that
    the user's line asked for, and not the calling of operators."""
    files = np.unique(tree.frames["file"])
    standard = [
        row
        for row in files.tolist()
        if origin(tree.tables.strings[row]) == Origin.RUNTIME and not _WRAPPERS.search(tree.tables.strings[row])
    ]
    python = tree.kinds == int(FrameKind.PYTHON)
    border = scopes.user == np.arange(len(tree))
    first = outermost(tree, python & ~border, border)
    found: Mask = np.isin(at_rows(tree.frames["file"][tree.frame_of], first), np.array(standard, np.int64)) & (
        first >= 0
    )
    return found


def function_of_frame(tree: Tree) -> Rows:
    """For every frame the number of its function; comprehensions and lambdas belong to the function they stand in."""
    names = np.unique(tree.frames["name"])
    texts: dict[str, int] = {}
    of_name = {row: texts.setdefault(_INNER.sub("", tree.tables.strings[row]), row) for row in names.tolist()}
    plain = np.zeros(int(names.max(initial=0)) + 1, np.int64)
    plain[list(of_name)] = list(of_name.values())
    return factorized(tree.frames["file"].astype(np.int64), plain[tree.frames["name"]])


def _made(tree: Tree, scopes: Scopes, rows: Rows, mine: Rows, ns: int) -> SampledFunction:
    users, group = np.unique(scopes.user[rows], return_inverse=True)
    lines = factorized(tree.frame_of[users].astype(np.int64))[group]
    sums = group_sums(lines, mine[rows], int(lines.max()) + 1)
    here = rows[lines == int(np.argmax(sums))]
    row = int(here[np.argmax(mine[here])])
    name = _INNER.sub("", tree.text("name", int(tree.frame_of[scopes.user[row]])))
    name = "module-level code" if name == "<module>" else name
    return SampledFunction(row, rows, ns, name, _called(tree, scopes, rows, mine, ns))


def _called(tree: Tree, scopes: Scopes, rows: Rows, mine: Rows, ns: int) -> tuple[tuple[str, float], ...]:
    """The first function below the user's line and the innermost (native) one, each where it has most of the time."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for row in rows[np.argsort(-mine[rows], kind="stable")][:500].tolist():
        user = int(scopes.user[row])
        below = [
            at
            for at in without_wrappers(tree, tree.path_rows(row))
            if at > user and says_something(tree.text("name", int(tree.frame_of[at])))
        ]
        for names, at in ((first, below[:1]), (last, below[-1:])):
            for one in at:
                name = present(tree.text("name", int(tree.frame_of[one])))
                names[name] = names.get(name, 0) + int(mine[row])
    made: dict[str, float] = {}
    for counted in (first, last):
        for name, sum_ns in sorted(counted.items(), key=lambda one: -one[1])[:1]:
            made.setdefault(name, sum_ns / ns)
    return tuple((name, share) for name, share in made.items() if share >= 0.1)


_SAYS_NOTHING = re.compile(r"\+0x[0-9a-f]+$|^\[|^_?Py|vectorcall|^dispatcher|^_array_function|<(?:genexpr|lambda)>")


def says_something(name: str) -> bool:
    """Whether a function's name tells a user more than that Python called it."""
    return not (_SAYS_NOTHING.search(name) or is_dispatch(name))


def present(name: str, most: int = 60) -> str:
    """A name as a sentence holds it: C++ templates and arguments left out."""
    short = re.sub(r"<[^<>]*>", "<>", name) if "::" in name else name
    return short if len(short) <= most else short[: most - 1] + "…"


def names_of(functions: Iterable[SampledFunction]) -> str:
    """`argsort (62 %), take_along_axis (20 %)`: what a function called."""
    return ", ".join(f"{name} ({percent(share)})" for one in functions for name, share in one.called)
