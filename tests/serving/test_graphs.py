"""The captured size that a batch is padded to is what vLLM's dispatcher pads it to."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import pytest

from leadline.capture.providers.engines.vllm_scheduler import _Graphs


class Mode(Enum):
    NONE = 0
    FULL_DECODE_ONLY = 1
    PIECEWISE = 2


def graphs(mode: Mode, sizes: list[int] | None) -> _Graphs:
    compilation = SimpleNamespace(cudagraph_mode=mode, cudagraph_capture_sizes=sizes)
    return _Graphs(SimpleNamespace(vllm_config=SimpleNamespace(compilation_config=compilation)))


@pytest.mark.parametrize(("tokens", "size"), [(1, 1), (3, 4), (8, 8), (9, 0)])
def test_the_next_larger_size(tokens: int, size: int) -> None:
    assert graphs(Mode.PIECEWISE, [8, 1, 4, 2]).size(tokens, decodes_only=False) == size


def test_prompts_run_in_no_graph_of_decodes() -> None:
    one = graphs(Mode.FULL_DECODE_ONLY, [4])
    assert (one.size(3, decodes_only=False), one.size(3, decodes_only=True)) == (0, 4)


@pytest.mark.parametrize("scheduler", [SimpleNamespace(), SimpleNamespace(vllm_config=None)])
def test_an_engine_without_graphs(scheduler: SimpleNamespace) -> None:
    assert _Graphs(scheduler).size(3, decodes_only=True) == 0
    assert graphs(Mode.NONE, [4]).size(3, decodes_only=True) == 0
    assert graphs(Mode.PIECEWISE, None).size(3, decodes_only=True) == 0
