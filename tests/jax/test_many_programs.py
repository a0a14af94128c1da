"""Thousands of programs: what is kept of them is bounded, each is read once, and what was let go is read again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.importers.hlo_files import Operation, module

from leadline.capture.providers.jax import places as jax_places
from leadline.capture.providers.jax import programs as jax_programs
from leadline.capture.providers.jax.programs import Programs

MANY = 2_000


class Executable:
    """As XLA's: a program, and how often its bytes were asked for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.read = 0
        self.traceback = None

    def hlo_modules(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(as_serialized_hlo_module_proto=self._bytes)]

    def _bytes(self) -> bytes:
        self.read += 1
        stack = (("train.py", "main", 9), ("train.py", "step", self.number))
        operations = [Operation(f"tanh.{i}", "tanh", "jit(step)/tanh", stack) for i in range(10)]
        return module("jit_step", self.number, {"main": operations})

    def get_compiled_memory_stats(self) -> SimpleNamespace:
        return SimpleNamespace(temp_size_in_bytes=64)


class Client:
    """Loaded programs, newest first."""

    def __init__(self) -> None:
        self.loaded: list[Executable] = []

    def live_executables(self) -> list[Executable]:
        return self.loaded[::-1]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(jax_places, "clients", lambda: [found])
    return found


def _line(programs: Programs, number: int) -> int:
    """Of an operation of a program."""
    compiled = programs.get(number)
    assert compiled is not None
    [part] = compiled.parts_of("tanh.7")
    lines = [frame[5] for frame in part.frames if frame[0] == "python"]
    return lines[-1] if lines else 0


def test_thousands_of_programs_are_read_once_each_and_keep_a_bounded_number_of_bytes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    programs = Programs(said.append)
    most = 50 * len(Executable(1)._bytes())
    monkeypatch.setattr(jax_programs, "MOST_BYTES", most)
    for number in range(1, MANY + 1):
        client.loaded.append(Executable(number))
        assert programs.learn_newest([], cached=False) is not None
        assert programs.bytes_at_hand() <= most
    assert [one.read for one in client.loaded] == [1] * MANY
    assert _line(programs, MANY) == MANY
    assert client.loaded[-1].read == 1, "one of the newest is still at hand"
    assert _line(programs, 1) == 1, "one that was let go is read again"
    assert programs.bytes_at_hand() <= most
    assert said == []


def test_a_program_that_was_let_go_and_is_unloaded_has_its_name_and_operations_without_lines(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(lambda sentence: None)
    monkeypatch.setattr(jax_programs, "MOST_BYTES", 1)
    for number in (1, 2):
        client.loaded.append(Executable(number))
        programs.learn_newest([], cached=False)
    client.loaded.pop(0)
    assert programs.name(1) == "jit_step"
    assert _line(programs, 1) == 0
    assert _line(programs, 1) == 0
    assert client.loaded[0].read == 2, "looked for once and no more"
