"""Optimizers whose arithmetic is known: what they move per parameter as one kernel and as separate operators.

Counted from the update rules as torch.optim writes them (`_single_tensor_*`, `_multi_tensor_*`): every operator reads
its tensor operands and writes one. An optimizer that is not in the table, or that multiplies matrices, has no answer.
"""

from __future__ import annotations

import re

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Selection
from leadline.work.kernels import COMPUTE


@dataclass(frozen=True)
class Algorithm:
    """Memory accesses per parameter element, fused and as separate operators."""

    name: str
    fused: int
    separate: int
    once: str
    """The operator that runs once for each parameter; its first operand is as large as the parameter."""


ADAM = Algorithm("Adam", 7, 18, "addcdiv_")
ADAGRAD = Algorithm("Adagrad", 5, 12, "addcdiv_")
SGD = Algorithm("SGD with momentum", 5, 8, "mul_")
PLAIN_SGD = Algorithm("SGD", 3, 3, "add_")

BY_NAME: tuple[tuple[str, Algorithm | None], ...] = (
    ("muon", None),
    ("shampoo", None),
    ("soap", None),
    ("lbfgs", None),
    ("sparseadam", None),
    ("adamax", Algorithm("Adamax", 7, 16, "addcdiv_")),
    ("nadam", Algorithm("NAdam", 7, 21, "addcdiv_")),
    ("radam", Algorithm("RAdam", 7, 20, "addcdiv_")),
    ("adadelta", Algorithm("Adadelta", 7, 22, "addcmul_")),
    ("adafactor", None),
    ("adagrad", ADAGRAD),
    ("adamw", Algorithm("AdamW", 7, 20, "addcdiv_")),
    ("adam", ADAM),
    ("rmsprop", Algorithm("RMSprop", 5, 11, "addcdiv_")),
    ("rprop", Algorithm("Rprop", 7, 18, "copy_")),
    ("asgd", Algorithm("ASGD", 5, 11, "addcmul_")),
    ("lamb", Algorithm("LAMB", 9, 24, "addcdiv_")),
    ("lars", Algorithm("LARS", 6, 12, "mul_")),
    ("lion", Algorithm("Lion", 5, 12, "add_")),
    ("sgd", SGD),
)
"""By what the optimizer's name holds, the first that fits; None: known, and no element-wise update."""

_MARK = re.compile(r"Optimizer\.step#([^.]+)\.step")


def algorithm_of(graph: Graph, update: Selection) -> Algorithm | str:
    """The optimizer by the framework's mark, else by its operators; a sentence where neither tells."""
    if update & KernelTable(graph).all(*COMPUTE) or _multiplies(graph, update):
        return "the weight update multiplies matrices (as Muon and Shampoo do), which no element-wise kernel replaces"
    named = sorted({found[1] for name in graph.names if (found := _MARK.search(name)) is not None})
    operators = " ".join(graph.names[row] for row in set(graph.column("name")[update.ids].tolist()))
    operators += " " + " ".join(graph.names[row] for row in set(graph.column("operator")[update.ids].tolist()))
    if len(named) > 1:
        return f"the step uses several optimizers ({', '.join(named)}); record a window with one"
    for name in named:
        for part, algorithm in BY_NAME:
            if part not in name.lower():
                continue
            if algorithm is None:
                return f"{name} is not an element-wise update, so this trace cannot predict a fused one"
            if algorithm is SGD and "mul" not in operators and operators:
                return PLAIN_SGD
            return algorithm
    return _by_operators(operators, named)


def _by_operators(operators: str, named: list[str]) -> Algorithm | str:
    """An optimizer without a name that is known: by the operators of its update."""
    if re.search(r"adam", operators, re.IGNORECASE):
        return ADAM
    if "addcdiv" in operators:
        # both divide by a root of squares; only Adam keeps a mean of the gradient as well
        return ADAM if re.search(r"lerp|mul_", operators) else ADAGRAD
    if named:
        return f"the arithmetic of {named[0]} is not known here"
    if re.search(r"aten::(_foreach_)?(add|sub|mul|lerp)_?", operators) or "multi_tensor_apply" in operators:
        return SGD if "mul" in operators else PLAIN_SGD
    return "neither a mark nor its operators show which optimizer updates the weights"


def _multiplies(graph: Graph, update: Selection) -> bool:
    """Whether operators of the update are matrix products, in a trace without a device."""
    names = {graph.names[row] for row in set(graph.column("name")[update.ids].tolist())}
    return any(re.search(r"::(mm|addmm|bmm|matmul|linalg_\w+|baddbmm)$", name) for name in names)
