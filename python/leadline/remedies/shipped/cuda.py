"""Options of CUDA's libraries and of torch's allocator."""

from __future__ import annotations

import os
from typing import Any

from leadline.remedies.base import NotApplied, Remedy
from leadline.remedies.trial import Trial

_NO_GPU = "the program uses no GPU"


class CudnnBenchmark(Remedy):
    name = "cudnn_benchmark"
    changes = "lets cuDNN try its convolution algorithms (torch.backends.cudnn.benchmark)"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._convolutions = 0

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.backends.cudnn", self._set)
        trial.on_module(self._look)

    def _set(self, cudnn: Any) -> None:
        cudnn.benchmark = True

    def _look(self, module: Any) -> None:
        import torch

        self._convolutions += sum(isinstance(one, torch.nn.modules.conv._ConvNd) for one in module.modules())

    def outcome(self, trial: Trial) -> str:
        import torch

        if not torch.cuda.is_initialized():
            return _NO_GPU
        if not torch.backends.cudnn.benchmark:
            return "the program turns it off"
        return "" if self._convolutions else "the program has no convolution"


class ExpandableSegments(Remedy):
    name = "expandable_segments"
    changes = "lets torch's CUDA allocator grow its segments (PYTORCH_CUDA_ALLOC_CONF)"

    def environment(self) -> dict[str, str]:
        name = next((one for one in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF") if os.environ.get(one)), "")
        given = [one for one in os.environ.get(name, "").split(",") if one]
        if "expandable_segments:True" in given:
            raise NotApplied(f"{name} has it already")
        if any(one.startswith("backend:") and one != "backend:native" for one in given):
            raise NotApplied(f"{name} chooses another allocator than torch's own")
        others = [one for one in given if not one.startswith("expandable_segments")]
        return {name or "PYTORCH_CUDA_ALLOC_CONF": ",".join([*others, "expandable_segments:True"])}

    def outcome(self, trial: Trial) -> str:
        import torch

        if not torch.cuda.is_initialized():
            return _NO_GPU
        segments = torch.cuda.memory_snapshot()
        grows = any(one.get("is_expandable") for one in segments)
        return "" if grows or not segments else "torch made no segment that grows; this driver or system has none"
