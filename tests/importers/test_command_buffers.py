"""Which instruction a kernel in a command buffer is of, over drawn schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from leadline.trace.importers.command_buffers import BY_NAME, BY_ORDER, Match, Schedule

if TYPE_CHECKING:
    from leadline._xla import Program


class _Drawn:
    def __init__(self, *computations: list[str]) -> None:
        self._all = [[(name, name.partition(".")[0]) for name in names] for names in computations]

    def schedules(self) -> list[list[tuple[str, str]]]:
        return self._all


def told(kernels: list[str], *computations: list[str]) -> list[Match]:
    return Schedule(cast("Program", _Drawn(*computations)), sorted(set(kernels))).of(kernels)


def test_a_library_s_kernels_are_of_the_call_between_those_of_their_neighbours() -> None:
    found = told(
        ["fusion_1", "gemm", "splitK", "fusion_2"],
        ["fusion.9", "fusion.1", "custom-call.1", "fusion.2", "custom-call.2"],
    )
    assert [one.instructions for one in found] == [("fusion.1",), ("custom-call.1",), ("custom-call.1",), ("fusion.2",)]
    assert [one.by for one in found] == [BY_NAME, BY_ORDER, BY_ORDER, BY_NAME]


def test_where_several_fit_all_are_told() -> None:
    found = told(["fusion_1", "memcpy128", "fusion_2"], ["fusion.1", "copy.1", "copy.2", "fusion.2"])
    assert found[1] == Match(("copy.1", "copy.2"), BY_ORDER)


def test_a_loop_inside_a_graph_is_followed() -> None:
    body = ["fusion.3", "copy.3", "fusion.4"]
    found = told(
        ["fusion_1", *["fusion_3", "memcpy128", "fusion_4"] * 3, "fusion_2"], ["fusion.1", "while.1", "fusion.2"], body
    )
    assert [one.instructions for one in found[1:10]] == [(name,) for name in body] * 3
    assert found[10] == Match(("fusion.2",), BY_NAME)


def test_without_a_name_of_the_program_nothing_is_told() -> None:
    assert told(["gemm", "memcpy128"], ["custom-call.1", "copy.1"]) == [Match(), Match()]
    assert told([], ["fusion.1"]) == []
