"""Several optimizers that take turns (two of a GAN, one for each parameter as in Pyro) end one step together."""

from __future__ import annotations


class OptimizerRounds:
    """Told of each optimizer step as it begins."""

    def __init__(self) -> None:
        self._round: set[int] = set()  # optimizers that have had their turn since a step ended

    def begins(self, optimizer: object) -> bool:
        """Whether this optimizer step belongs to another step of the program than the one before it. An optimizer that
        has its first turn behind another one's ends no step of its own."""
        if self._round and id(optimizer) not in self._round:
            self._round.add(id(optimizer))
            return False
        self._round = {id(optimizer)}
        return True
