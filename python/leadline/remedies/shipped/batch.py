"""Larger batches: the table then compares time for each sample."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import RemedyError
from leadline.remedies.shipped.loaders import _Loader


class Batch(_Loader):
    name = "batch"
    changes = "multiplies the batch size of loaders; times are per sample"
    needs = "xN"
    computes_else = True
    scenario = "batch_size"

    def check(self) -> None:
        self.samples = self._factor()

    def _factor(self) -> float:
        try:
            factor = float(self.chosen.removeprefix("x"))
        except ValueError:
            factor = 0.0
        if not 0 < factor <= 1024:
            raise RemedyError(f"The fix batch takes a factor such as batch=x2, not {self.chosen!r}.")
        return factor

    @property
    def scenario_settings(self) -> dict[str, str]:
        return {"factor": self.chosen.removeprefix("x")}

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("batch_sampler") is not None or given.get("batch_size", 1) is None:
            self._reason = "the loaders take their batches from a sampler of the program's own"
            return {}
        now = int(given.get("batch_size", 1))
        wanted = round(now * self._factor())
        if wanted == now or wanted < 1:
            self._reason = f"batches of {now} cannot be multiplied by {self._factor():g}"
            return {}
        if hasattr(given.get("dataset"), "__len__") and len(given["dataset"]) < wanted:
            self._reason = f"the data set has fewer than {wanted} samples"
            return {}
        return {"batch_size": wanted}
