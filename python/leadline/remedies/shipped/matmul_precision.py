"""Matrix products of float32 in less precise types inside."""

from __future__ import annotations

from typing import Any, ClassVar

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class Float32MatmulPrecision(Remedy):
    name = "float32_matmul_precision"
    changes = "calls torch.set_float32_matmul_precision"
    value = "high"
    choices: ClassVar[tuple[str, ...]] = ("high", "medium")
    precision = "bfloat16"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._before = ""

    @property
    def _wanted(self) -> str:
        return self.chosen

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch", lambda torch: self._set(trial, torch))

    def _set(self, trial: Trial, torch: Any) -> None:
        """The program's own calls set nothing."""
        self._before = torch.get_float32_matmul_precision()
        original = torch.set_float32_matmul_precision
        original(self._wanted)

        def keep(precision: str) -> None:
            self._before = precision

        trial.replaced.everywhere("set_float32_matmul_precision", original, keep)

    def outcome(self, trial: Trial) -> str:
        import torch

        if self._before == self._wanted:
            return f"the program has the precision {self._wanted} already"
        if torch.cuda.is_available():
            capable = torch.cuda.get_device_capability() >= (8, 0)
            return "" if capable else "this GPU has no TF32"
        if self._wanted == "medium" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return ""
        return "on this CPU it changes no matrix product"


class Tf32(Float32MatmulPrecision):
    name = "tf32"
    changes = "lets matrix products and convolutions of float32 run as TF32"
    value = ""
    choices = ()

    @property
    def _wanted(self) -> str:
        return "high"

    def _set(self, trial: Trial, torch: Any) -> None:
        super()._set(trial, torch)
        torch.backends.cudnn.allow_tf32 = True

    def outcome(self, trial: Trial) -> str:
        import torch

        return super().outcome(trial) if torch.cuda.is_available() else "there is no GPU with TF32"
