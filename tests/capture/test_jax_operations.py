"""Titles of XLA's programs and operations where the program is behind a plug-in, which does not tell its number."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.capture.providers.jax.operations import Operations, millionths
from leadline.xla.parts import Part


class Compiled:
    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line

    def parts_of(self, operation: str) -> tuple[Part, ...]:
        return (Part((("python", operation, "", "model.py", "", self.line, 0, 0),), 1.0),)


class Programs:
    def __init__(self, *compiled: Compiled, numbered: dict[int, Compiled] | None = None) -> None:
        self.compiled = compiled
        self.numbered = numbered or {}

    def named(self, name: str) -> list[Compiled]:
        return [one for one in self.compiled if one.name == name]

    def get(self, number: int, name: str = "") -> Compiled | None:
        return self.numbered.get(number)


class Native:
    def __init__(self, *unexplained: tuple[int, str, str]) -> None:
        self.unexplained = list(unexplained)
        self.programs: dict[int, str] = {}
        self.lines: dict[tuple[int, str], int] = {}
        self.names: dict[tuple[int, str], str] = {}

    def explain_program(self, program: int, frame: Any) -> None:
        self.programs[program] = frame[1]

    def explain_operation(self, program: int, operation: str, parts: Any) -> None:
        [(frames, share)] = parts
        assert share == 1_000_000
        self.lines[program, operation] = frames[0][5]
        self.names[program, operation] = frames[-1][1]

    def unexplained_operations(self) -> list[tuple[int, str, str]]:
        return self.unexplained

    def titled_runs(self) -> dict[int, int]:
        return dict.fromkeys(self.programs, 5)


def explained(native: Native, *compiled: Compiled) -> Operations:
    operations = Operations(native, Programs(*compiled))  # type: ignore[arg-type]
    operations.explain()
    return operations


def test_programs_of_one_name_are_told_apart_by_their_order() -> None:
    native = Native((12597, "", "jit_step"), (12597, "dot.1", ""), (7, "", "jit_step"), (7, "dot.1", ""))
    operations = explained(native, Compiled("jit_step", 10), Compiled("jit_other", 11), Compiled("jit_step", 20))
    assert native.programs == {7: "jit(step)", 12597: "jit(step)"}
    assert native.lines == {(7, "dot.1"): 10, (12597, "dot.1"): 20}
    assert operations.heard() == {"jit(step)": 10}


def test_where_not_all_of_them_ran_the_one_compiled_last_stands_for_them() -> None:
    native = Native((9, "", "jit_step"), (9, "dot.1", ""))
    explained(native, Compiled("jit_step", 10), Compiled("jit_step", 20))
    assert native.lines == {(9, "dot.1"): 20}


def test_what_no_program_tells_is_named_by_its_title() -> None:
    native = Native((9, "", "jit_step"), (9, "gemm_fusion_dot.66", ""), (9, "command_buffer_104", ""))
    operations = explained(native)
    assert native.programs == {9: "jit(step)"}
    assert native.names == {(9, "gemm_fusion_dot.66"): "gemm_fusion_dot", (9, "command_buffer_104"): "command buffer"}
    assert operations.heard() == {"jit(step)": 5}


def test_a_program_of_another_name_does_not_stand_for_one_of_its_number() -> None:
    native = Native((1, "", "jit_multiply"), (1, "mul.1", ""), (2, "", "jit_step"), (2, "dot.1", ""))
    programs = Programs(numbered={1: Compiled("jit_step", 10), 2: Compiled("jit_step", 20)})
    Operations(native, programs).explain()  # type: ignore[arg-type]
    assert native.programs == {1: "jit(multiply)", 2: "jit(step)"}
    assert native.lines == {(1, "mul.1"): 0, (2, "dot.1"): 20}


@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.5], [1 / 3] * 3, [0.0, 1.0], [2.0, 6.0], [1e-9] * 7])
def test_shares_in_whole_numbers_are_a_million_together(shares: list[float]) -> None:
    found = millionths(shares)
    assert sum(found) == 1_000_000 and min(found) >= 0
    assert all(abs(part / 1e6 - share / sum(shares)) <= 1e-6 for part, share in zip(found, shares, strict=True))
