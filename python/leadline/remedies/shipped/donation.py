"""JAX: results take the memory of arguments that nobody needs any more."""

from __future__ import annotations

from typing import Any

from leadline.capture.providers.jax.arguments import Arguments
from leadline.remedies.base import NotApplied, Remedy
from leadline.remedies.programs import Program, is_called
from leadline.remedies.trial import Trial

_LOOKED = 2
"""Calls that have to agree on which arguments nobody holds any more."""
LEAST_WARM_UP = _LOOKED + 3
"""One call whose arguments others may hold, those that are looked at and one that judges them, one that compiles."""


class Donation(Remedy):
    name = "donation"
    changes = "gives the memory of a JAX program's old arguments to its results (donate_argnums of jax.jit)"
    may_be = "FUNCTION"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._calls: dict[int, int] = {}
        self._looks: dict[int, Arguments] = {}
        self._donates: dict[int, tuple[int, ...]] = {}
        self._reused = 0
        self._reasons: dict[str, None] = {}
        self._names: dict[str, None] = {}

    def start(self, trial: Trial) -> None:
        if trial.plan.warm_up < LEAST_WARM_UP:
            raise NotApplied(f"it needs a warm-up of {LEAST_WARM_UP} steps; add --warm-up {LEAST_WARM_UP}")
        self._wanted = self.chosen or trial.plan.program
        trial.programs.actions.append(self._watch)
        trial.programs.install()

    def _watch(self, program: Program) -> None:
        self._names[program.name.rpartition(".")[2]] = None
        if self._wanted not in ("", program.name) and not is_called(self._wanted, program.function):
            return
        if program.donates:
            self._reasons[f"{_short(program)} donates arguments already"] = None
            return
        program.after = self._called

    def _called(self, program: Program, arguments: Any, named: Any, result: Any) -> None:
        key = id(program)
        number = self._calls[key] = self._calls.get(key, 0) + 1
        places = self._donates.get(key)
        if places is not None:
            self._judge(program, [arguments[place] for place in places if place < len(arguments)])
        elif number > 1:
            look = self._looks.setdefault(key, Arguments({program.name}, enough=_LOOKED))
            look.inspect(program, program.name, arguments, named, result)
            for _, note in look.facts():
                self._donates[key] = tuple(note["places"])
                program.make_anew(donate_argnums=self._donates[key])

    def _judge(self, program: Program, donated: list[Any]) -> None:
        """Whether the memory of what was donated was taken, behind the first call that donates."""
        import jax

        program.after = None
        leaves = [leaf for leaf in jax.tree_util.tree_leaves(donated) if hasattr(leaf, "is_deleted")]
        taken = sum(bool(leaf.is_deleted()) for leaf in leaves)
        self._reused += taken
        if not taken:
            self._reasons[f"JAX could not use the memory of {_short(program)}'s arguments again"] = None

    def outcome(self, trial: Trial) -> str:
        if self._reused:
            return ""
        if self._reasons:
            return "; ".join(self._reasons)
        if not self._names:
            return "the program calls no jax.jit"
        if not self._calls:
            asked = self._wanted or "such a function"
            return f"jax.jit compiles no {asked.rpartition('.')[2]}; it compiles {', '.join(list(self._names)[:5])}"
        return "the program still holds the old arguments, or no result has their shape and type"


def _short(program: Program) -> str:
    return program.name.rpartition(".")[2]
