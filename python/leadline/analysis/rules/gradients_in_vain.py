"""Part of `unused_gradients`: gradients that are thrown away before their optimizer steps, and those that are mostly
zero.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.calls_in_source import lines_that_call, unique_lines
from leadline.analysis.columns import nearest
from leadline.analysis.rules.backward_lines import backward_lines
from leadline.analysis.rules.base import Case, Finding, Severity, Values
from leadline.analysis.rules.habits import habits, modules_named
from leadline.analysis.rules.sparse_gradients import Sparse, sparse_gradients
from leadline.analysis.rules.words import listed
from leadline.units import abbreviated, duration, percent, size

_FREEZE = (
    "Freeze the model that only passes gradients on while the other one learns: model.requires_grad_(False) before "
    "that backward pass, and True after it."
)
_DETACH = (
    "Detach what the other model is to learn from (`fake = generator(noise).detach()`, or below torch.no_grad()), and "
    "freeze the one that only passes gradients on (requires_grad_(False)) meanwhile."
)


ZEROS = 8
"""Rows of an embedding's gradient for each that can differ from zero."""


@dataclass(frozen=True)
class _Dense:
    """A dense gradient of an embedding. `row`, `owner`: nodes of its backward and its forward operator; `whole`,
    `used`: bytes of one gradient, and of what was looked up; `ns`: making all of them."""

    row: int
    owner: int
    whole: int
    used: float
    ns: int
    sparse: Sparse


def discarded(case: Case, rule: str, learn_more: str, values: Values) -> list[Finding]:
    """A backward pass that went through another model, whose optimizer cleared its gradients before it used them."""
    told = max(habits(case, "discarded_gradients"), key=lambda one: int(one.get("parameters", 0)), default={})
    if not told.get("modules"):
        return []
    modules = case.first_of(modules_named(case, told["modules"]))
    backward = case.first_of(case.in_phase("backward") & case.below(modules))
    owner = nearest(case.tree.shape, modules)
    rows = np.unique(owner[backward])
    places = len(np.unique(case.user_line[rows]))
    if not len(rows):
        return []
    everything = int(case.cost_with_all_below[backward].sum())
    ns = everything / max(places, 2)  # of its passes each has one line, and one of them is in vain
    share = ns / max(case.cost_of_all, 1)
    if share < values["info"]:
        return []
    names = [str(one["module"] or one["class"]) for one in told["modules"]]
    asked = backward_lines(case)
    detached = bool(lines_that_call(case, ("detach", "detach_", "no_grad")))  # what is left is the way through a model
    return [
        Finding(
            rule,
            Severity.WARNING if share >= values["share"] and not detached else Severity.INFO,
            f"Gradients of {abbreviated(int(told['parameters']))} parameters are computed and discarded before their "
            f"optimizer steps, about {percent(share)} of {case.cost_name}",
            case.gain(
                everything, (0.1, 1 / max(places, 2), 1), "estimate: one of the backward passes of these modules"
            ),
            tuple(rows[:20].tolist()),
            case.lines([*rows[:1].tolist(), *asked[:1].tolist(), *rows[1:].tolist()]),
            (
                f"another optimizer stepped in between; it does not have the parameters of {listed(names)}",
                f"all backward passes of these modules take {duration(case.per_step(everything))} a step",
            ),
            _FREEZE if detached else _DETACH,
            learn_more,
            share,
        )
    ]


def mostly_zero(case: Case, rule: str, learn_more: str, values: Values) -> list[Finding]:
    """Gradients of embeddings that are many times as large as what was looked up: all rows but those are zero."""
    alike = _dense(case, values["zeros"])
    if not alike:
        return []
    sparse = alike[0].sparse
    optimizer = int(case.cost_with_all_below[case.first_of(case.in_phase("optimizer") & case.loop.inside)].sum())
    whole, used, ns = sum(one.whole for one in alike), sum(one.used for one in alike), sum(one.ns for one in alike)
    applied = optimizer * _part_of_updated(case, whole)
    share = (ns + applied) / max(case.cost_of_all, 1)
    if share < values["share" if sparse.changes else "info"]:
        return []
    of = "an embedding's gradient is" if len(alike) == 1 else "the embeddings' gradients is"
    return [
        Finding(
            rule,
            Severity.WARNING if share >= values["share"] and not sparse.changes else Severity.INFO,
            f"At most {percent(used / whole)} of {of} not zero; making and applying it takes {percent(share)} of "
            f"{case.cost_name}",
            case.gain_sums(
                (0.5 * ns, 0.9 * (ns + applied), ns + applied + case.between_ns * 0.1),
                "bound: the dense gradients, and their part of the optimizer",
            ),
            tuple(one.row for one in alike),
            unique_lines(
                (
                    *lines_that_call(case, ("Embedding", "EmbeddingBag")),
                    *case.lines([one.owner for one in alike]),
                )
            ),
            (f"gradients of {size(whole)} for {size(int(used))} that a step looks up",),
            sparse.remedy,
            learn_more,
            share,
        )
    ]


def mostly_zero_part(case: Case) -> float:
    """Of what the optimizer updates, the part whose gradients could be sparse without other changes; 0 where it is not
    known."""
    return _part_of_updated(case, sum(one.whole for one in _dense(case, ZEROS) if not one.sparse.changes))


def _part_of_updated(case: Case, whole: int) -> float:
    updated = max((int(one.get("bytes", 0)) for one in habits(case, "updated")), default=0)
    return min(1.0, whole / updated) if updated else 0.0


def _dense(case: Case, zeros: float) -> list[_Dense]:
    """Those that the same changes make sparse as the one that takes most, which is the first."""
    sizes = case.tree.exclusive("alloc_bytes")
    each = sizes.sum // np.maximum(sizes.count, 1)
    made_of = case.analysis.inclusive("alloc_bytes")
    dense = case.operators("aten::embedding_dense_backward") & (made_of > 0)
    below_dense = case.below(dense)
    forward = case.operators("aten::embedding")
    owner = nearest(case.tree.shape, forward)
    backward = case.in_phase("backward")
    found: list[_Dense] = []
    for row in np.flatnonzero(dense & (owner >= 0)).tolist():
        calls = max(int(case.calls[row]), 1)
        whole = int(made_of[row]) // calls
        used = _forward_bytes(case, int(owner[row])) / max(int(case.calls[owner[row]]), 1)
        if not 0 < used * zeros <= whole:
            continue
        if (backward & ~below_dense & (each == whole) & (sizes.count * 2 >= calls)).any():
            continue  # an output layer of the same size: shared weights have a dense gradient anyway
        sparse = sparse_gradients(case, int(owner[row]))
        if sparse.possible:
            found.append(_Dense(row, int(owner[row]), whole, used, int(case.cost_with_all_below[row]), sparse))
    if not found:
        return []
    largest = max(found, key=lambda one: one.ns)
    return sorted((one for one in found if one.sparse == largest.sparse), key=lambda one: -one.ns)


def _forward_bytes(case: Case, row: int) -> int:
    """What an operator has allocated with what it calls, without its backward pass."""
    below = case.below_row(row)
    below = below[~case.in_phase("backward")[below]]
    return int(case.tree.exclusive("alloc_bytes").sum[below].sum())
