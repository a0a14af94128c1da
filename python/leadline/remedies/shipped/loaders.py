"""Options of torch's DataLoader."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class _Loader(Remedy):
    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._made = 0
        self._changed = 0
        self._reason = ""

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.utils.data.dataloader", lambda module: self._follow(trial, module.DataLoader))

    def _follow(self, trial: Trial, loader: Any) -> None:
        original = loader.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def made(this: Any, *arguments: Any, **named: Any) -> Any:
            given = signature.bind_partial(this, *arguments, **named).arguments
            changes = self.changed(given)
            self._made += 1
            self._changed += bool(changes)
            if not changes:
                return original(this, *arguments, **named)
            rest = {key: value for key, value in given.items() if key not in ("self", "dataset")}
            return original(this, given["dataset"], **{**rest, **changes})

        trial.replaced.attribute(loader, "__init__", made)

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments to be changed, of those given; none where it does not apply, with `_reason`."""
        raise NotImplementedError

    def outcome(self, trial: Trial) -> str:
        if not self._made:
            return "the program makes no DataLoader of torch"
        return "" if self._changed else self._reason


class Workers(_Loader):
    name = "workers"
    changes = "loads batches in N processes"
    needs = "N"
    scenario = "data_loading"

    def check(self) -> None:
        self.number()

    @property
    def scenario_settings(self) -> dict[str, str]:
        return {"workers": self.chosen}

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        wanted, now = self.number(), int(given.get("num_workers", 0))
        if now == wanted:
            self._reason = f"the loaders have {now} workers already"
            return {}
        if wanted == 0:
            given.pop("persistent_workers", None)
            given.pop("prefetch_factor", None)
        return {"num_workers": wanted}


class PersistentWorkers(_Loader):
    name = "persistent_workers"
    changes = "keeps the loaders' processes from epoch to epoch"

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        if not given.get("num_workers", 0):
            self._reason = "the loaders have no workers"
        elif given.get("persistent_workers"):
            self._reason = "the workers persist already"
        else:
            return {"persistent_workers": True}
        return {}


class PinMemory(_Loader):
    name = "pin_memory"
    changes = "loads batches into page-locked memory"

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        import torch

        if not torch.accelerator.is_available():
            self._reason = "there is no device to copy to"
        elif given.get("pin_memory"):
            self._reason = "the loaders use page-locked memory already"
        else:
            return {"pin_memory": True}
        return {}


class PrefetchFactor(_Loader):
    name = "prefetch_factor"
    changes = "lets each worker of a loader be N batches ahead"
    needs = "N"

    def check(self) -> None:
        self.number(1)

    def changed(self, given: dict[str, Any]) -> dict[str, Any]:
        if not given.get("num_workers", 0):
            self._reason = "the loaders have no workers"
        elif (given.get("prefetch_factor") or 2) == self.number():
            self._reason = f"the workers are {self.number()} batches ahead already"
        else:
            return {"prefetch_factor": self.number()}
        return {}
