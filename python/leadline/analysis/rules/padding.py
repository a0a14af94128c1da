"""`padding`: a model computes positions that hold no data: rows of a batch are filled up to one length.

The profiled process looks at the numbers that an embedding looks up (native/providers/torch/padding.h). Needs shapes:
`leadline why`, `--shapes`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import numpy as np

from leadline.analysis.calls_in_source import name_of, unique_lines, user_trees
from leadline.analysis.columns import Rows
from leadline.analysis.findings import NO_SHAPES
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits_listed, provider_facts
from leadline.schema import FrameKind
from leadline.units import duration, percent

_MILLION = 1_000_000
_FILLS = ("pad_sequence", "pad", "full", "new_full", "full_like", "zeros", "new_zeros", "ones")
"""What a function that joins samples makes a padded batch by."""
_ASKS_PLAINLY = frozenset(("pad_to_max_length", "pad_to_multiple_of"))
_LENGTHS = ("max_length", "longest")
"""What `padding` is for tokenizers; for convolutions it is a number, "same" or "valid"."""
_OF_TOKENIZERS = frozenset(("truncation", "max_length", "return_tensors"))

_SORT = "Put rows of similar length into one batch, or pack several into one row."
_PAD = (
    "Pad each batch to its own longest row only (padding='longest', pad_sequence in collate_fn), put rows of similar "
    "length into one batch, or pack several into one row."
)
_TO_LONGEST = 0.02
"""Of a batch: where no more of its columns are padding in every row, it is padded to its longest row."""


class Padding(Rule):
    name = "padding"
    asks = "How much of a batch is padding?"
    options = (
        Option("part", 25, "%", "of a batch; texts of different lengths leave a fifth even when they are sorted"),
        Option("share", 5, "%", "of the step that would be saved; less does not justify a change"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree = case.tree
        told = _told(case)
        rows = np.flatnonzero(case.operators("aten::embedding") & ~case.in_phase("backward"))
        if not len(rows):
            raise CannotTell("no embedding was looked up")
        if told is None:
            recorded = any(case.tree.node(int(row)).detail.get("shapes") for row in rows[:20])
            raise CannotTell("no batch of token numbers was inspected" if recorded else NO_SHAPES)
        if case.operators("aten::_pack_padded_sequence").any():
            return []  # the layers behind it skip what is padded
        calls, part, cut = told
        if part < values["part"]:
            return []
        modules = case.first_of((tree.kinds == int(FrameKind.MODULE)) & case.loop.inside)
        outer = np.unique(case.outermost(modules)[rows])
        outer = outer[outer >= 0]
        ns = int(case.cost_with_all_below[outer].sum()) if len(outer) else case.cost_of_all
        likely = max(0.9 * cut, 0.5 * part)
        share = likely * ns / max(case.cost_of_all, 1)
        if share < values["share"]:
            return []
        order = outer if len(outer) else rows
        to_longest = cut < _TO_LONGEST
        filled = "its longest row fills all of it" if to_longest else f"its longest row fills {percent(1 - cut)}"
        return [
            Finding(
                self.name,
                Severity.INFO if to_longest else Severity.WARNING,
                f"{percent(part)} of each batch is padding, and {filled}",
                case.gain(ns, (0.5 * likely, likely, part), "bound: the model's time for positions that hold padding"),
                tuple(order[:20].tolist()),
                unique_lines((*_makers(case, rows), *case.lines(_callers(case, order)))),
                (
                    f"in {calls:,} inspected batches",
                    f"the model takes {duration(case.per_step(ns))} a step; a mask does not make it cheaper",
                ),
                _SORT if to_longest else _PAD,
                self.learn_more,
                share,
            )
        ]


def _told(case: Case) -> tuple[int, float, float] | None:
    """Batches that were looked at; the part of one that is padding, and that is padding in every row."""
    batches = padding = common = 0
    for one in provider_facts(case, "padding"):
        batches += int(one.get("batches", 0))
        padding += int(one.get("all", 0))
        common += int(one.get("common", 0))
    return (batches, padding / batches / _MILLION, common / batches / _MILLION) if batches > 0 else None


def _callers(case: Case, rows: Rows) -> list[int]:
    """What calls these modules."""
    return np.maximum(case.tree.shape.parent[rows], 0).tolist()  # type: ignore[no-any-return]


def _makers(case: Case, rows: Rows) -> list[Line]:
    """The line that fills up the rows of a batch: in the loader's own function, else one that makes a tensor of the
    size of what is looked up in `rows`, else where padding is asked for."""
    found: list[Line] = []
    for known in habits_listed(case, "batches"):
        place = known.get("join")
        if isinstance(place, dict) and case.is_own(str(place.get("file", ""))):
            file, first = str(place["file"]), int(place["line"])
            source = case.sources.of(file)
            function = source.function(first) if source is not None else None
            lines = sorted(_filling(function)) if function is not None else []
            found += [case.line_at(file, lines[0] if lines else first, str(place.get("name", "")))]
    found = found[:1] or [line for line in _of_the_size(case, rows) if case.is_own(line.file)]
    if not found:
        found = [case.line_at(file, line) for file, tree in user_trees(case) for line in sorted(_asking(tree))]
    return found[:1]


def _of_the_size(case: Case, rows: Rows) -> list[Line]:
    """Lines outside of modules whose operators make a tensor of as many numbers of eight bytes as are looked up."""
    wanted = set()
    for row in rows[:50].tolist():
        shapes = case.tree.node(row).detail.get("shapes")
        if isinstance(shapes, list) and len(shapes) > 1 and isinstance(shapes[1], list):
            wanted.add(8 * math.prod(int(size) for size in shapes[1]))
    made = case.analysis.inclusive("alloc_bytes") // np.maximum(case.calls, 1)
    makers = case.operators(*(f"aten::{name}" for name in _FILLS)) & (case.analysis.scopes.module < 0)
    makers &= np.isin(made, np.array(sorted(wanted), np.int64))
    return list(case.lines(np.flatnonzero(makers).tolist(), 1))


def _filling(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and (name_of(node.func) in _FILLS or _asks_for_padding(node)):
            yield node.lineno


def _asking(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name_of(node.func) == "pad_sequence" or _asks_for_padding(node)):
            yield node.lineno


def _asks_for_padding(call: ast.Call) -> bool:
    """`tokenizer(texts, padding="max_length")`, and not `nn.Conv1d(8, 8, 3, padding=1)`."""
    given = {one.arg: one.value for one in call.keywords}
    if given.keys() & _ASKS_PLAINLY:
        return True
    padding = given.get("padding")
    if isinstance(padding, ast.Constant):
        return padding.value is True or padding.value in _LENGTHS
    return padding is not None and bool(given.keys() & _OF_TOKENIZERS)
