"""`sys.remote_exec` (3.14) leaves a file for the main thread, which must not begin to measure when it comes late."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.attach import inject
from leadline.attach.target import AttachError


def begin(answers: bool) -> tuple[bool, Path]:
    """Whether measuring began, and the file that the main thread comes to."""
    files: list[str] = []
    target = SimpleNamespace(pid=os.getpid())
    good = inject._by_file(target, "measured = True\n", lambda pid, file: files.append(file), lambda _: answers)
    return good, Path(files[0])


def run(file: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(file.read_text(), found)
    return found


def test_a_main_thread_that_comes_late_measures_nothing() -> None:
    good, file = begin(answers=False)
    assert not good
    assert "measured" not in run(file) and not file.exists()


@pytest.mark.parametrize("refusal", [AttachError("may not be held"), PermissionError("ptrace")])
def test_it_is_asked_only_where_the_main_thread_may_not_be_held(monkeypatch: pytest.MonkeyPatch, refusal) -> None:
    asked: list[str] = []

    def refused(*_: object) -> bool:
        raise refusal

    def by_file(*_: object) -> bool:
        asked.append("file")
        return True

    target = SimpleNamespace(pid=os.getpid(), runtime=lambda: 1, text=lambda _: "", refusal=str)
    monkeypatch.setattr(inject, "_by_file", by_file)
    monkeypatch.setattr(inject.sys, "remote_exec", print, raising=False)
    monkeypatch.setattr(inject, "_by_pending_call", lambda *_: True)
    inject.run_python(target, "", lambda _: False)
    assert asked == []
    monkeypatch.setattr(inject, "_by_pending_call", refused)
    inject.run_python(target, "", lambda _: False)
    assert asked == ["file"]
    monkeypatch.delattr(inject.sys, "remote_exec")
    with pytest.raises(AttachError, match=str(refusal)):
        inject.run_python(target, "", lambda _: False)
