"""Options of torch's DistributedDataParallel."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class _Ddp(Remedy):
    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._made = 0
        self._changed = 0

    def option(self) -> tuple[str, Any]:
        """Argument of DistributedDataParallel and its value."""
        raise NotImplementedError

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.nn.parallel.distributed", lambda module: self._follow(trial, module))

    def _follow(self, trial: Trial, module: Any) -> None:
        owner = module.DistributedDataParallel
        original = owner.__init__
        signature = inspect.signature(original)
        name, value = self.option()

        @functools.wraps(original)
        def made(this: Any, *arguments: Any, **named: Any) -> None:
            given = signature.bind_partial(this, *arguments, **named).arguments
            self._made += 1
            self._changed += given.get(name) != value
            rest = {key: one for key, one in given.items() if key not in ("self", "module")}
            original(this, given["module"], **{**rest, name: value})

        trial.replaced.attribute(owner, "__init__", made)

    def outcome(self, trial: Trial) -> str:
        if not self._made:
            return "the program makes no DistributedDataParallel"
        return "" if self._changed else f"the program has {self.option()[0]}={self.option()[1]} already"


class DdpStaticGraph(_Ddp):
    name = "ddp_static_graph"
    changes = "makes DistributedDataParallel with static_graph=True"

    def option(self) -> tuple[str, Any]:
        return "static_graph", True


class GradientAsBucketView(_Ddp):
    name = "gradient_as_bucket_view"
    changes = "makes DistributedDataParallel with gradient_as_bucket_view=True"

    def option(self) -> tuple[str, Any]:
        return "gradient_as_bucket_view", True


class BucketCapMb(_Ddp):
    name = "bucket_cap_mb"
    changes = "makes DistributedDataParallel with buckets of N MiB"
    needs = "N"

    def check(self) -> None:
        self.number(1)

    def option(self) -> tuple[str, Any]:
        return "bucket_cap_mb", self.number(1)
