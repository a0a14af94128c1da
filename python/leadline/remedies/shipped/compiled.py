"""torch.compile of each outermost module, in place."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class Compile(Remedy):
    name = "compile"
    changes = "compiles each outermost module with torch.compile"
    value = "default"
    choices = ("default", "reduce-overhead", "max-autotune")
    scenario = "fuse_elementwise"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._compiled = 0
        self._refusal = ""

    def start(self, trial: Trial) -> None:
        trial.on_module(self._compile)

    def _compile(self, module: Any) -> None:
        import torch

        if isinstance(module, torch._dynamo.OptimizedModule) or _has_compiled(module):
            self._refusal = "the program is compiled already"
        elif self.chosen == "reduce-overhead" and not any(one.is_cuda for one in module.parameters()):
            self._refusal = "reduce-overhead records CUDA graphs, and no GPU is used; compile=default runs here"
        else:
            module.compile(mode=None if self.chosen == "default" else self.chosen)
            self._compiled += 1

    def outcome(self, trial: Trial) -> str:
        if self._refusal and not self._compiled:
            return self._refusal
        if not self._compiled:
            return "no module with parameters was called"
        import torch

        counts = torch._dynamo.utils.counters
        graphs = counts["stats"]["unique_graphs"]
        trial.facts["compile"] = {"graphs": graphs, "breaks": sum(counts["graph_break"].values())}
        return "" if graphs else f"torch.compile made no graph of it{_reason(counts)}"


def _has_compiled(module: Any) -> bool:
    return any(getattr(one, "_compiled_call_impl", None) for one in module.modules())


def _reason(counts: Any) -> str:
    """What torch says of it most often."""
    said = {**counts["unimplemented"], **counts["graph_break"]}
    lines = str(max(said, key=lambda one: said[one], default="")).strip().splitlines()
    return f" ({lines[0][:120].rstrip('.')})" if lines else ""
