"""`sys.remote_exec` (3.14) leaves a file for the main thread: what was begun another way must not begin again later."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.attach import inject
from leadline.attach.target import AttachError


def begin(monkeypatch: pytest.MonkeyPatch, pending: object, answers: list[bool]) -> tuple[bool, Path]:
    """Where the main thread does not answer: whether measuring began, and the file that it still comes to."""
    files: list[str] = []
    monkeypatch.setattr(inject, "_by_pending_call", pending)
    target = SimpleNamespace(pid=os.getpid())
    good = inject._by_file(target, "measured = True\n", lambda pid, file: files.append(file), lambda _: answers.pop(0))
    return good, Path(files[0])


def run(file: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(file.read_text(), found)
    return found


def test_the_main_thread_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    good, file = begin(monkeypatch, None, [True])
    assert good and run(file)["measured"] and not file.exists()


def refused(*_: object) -> bool:
    raise AttachError("may not be held")


@pytest.mark.parametrize(
    ("pending", "answers", "expected"),
    [(lambda *_: True, [False], True), (lambda *_: False, [False], False), (refused, [False, False], False)],
)
def test_a_main_thread_that_comes_late_measures_nothing(monkeypatch, pending, answers, expected) -> None:
    good, file = begin(monkeypatch, pending, answers)
    assert good == expected
    assert "measured" not in run(file) and not file.exists()
