"""`tools/test_python.py`: what fails beside others and passes alone is named, what fails twice fails the run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "test_python.py"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_python_script", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LAST_FAILED", tmp_path / "lastfailed")
    return module


def runs(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, failed: list[str], *statuses: int
) -> list[tuple[str, ...]]:
    """Lets the runs of pytest end with these statuses; the arguments of each run."""
    seen: list[tuple[str, ...]] = []

    def run(*arguments: str) -> int:
        script.LAST_FAILED.write_text(json.dumps(dict.fromkeys(failed, True)))
        seen.append(arguments)
        return statuses[len(seen) - 1]

    monkeypatch.setattr(script, "run", run)
    return seen


def test_what_passes_alone_is_named(script, monkeypatch, capsys) -> None:
    seen = runs(script, monkeypatch, ["tests/a.py::test_b[x - y]"], 1, 0)
    assert script.main("2") == 0
    assert seen[1] == ("tests/a.py::test_b[x - y]",)
    assert "tests/a.py::test_b[x - y] passed only when run alone" in capsys.readouterr().out


@pytest.mark.parametrize("status", [0, 2, 4, 5, 6])
def test_only_failures_are_tried_again(script, monkeypatch, status: int) -> None:
    seen = runs(script, monkeypatch, ["tests/a.py::test_b"], status)
    assert script.main("2") == status and len(seen) == 1


def test_what_fails_twice_and_what_fails_widely_fails(script, monkeypatch, capsys) -> None:
    runs(script, monkeypatch, ["tests/a.py::test_b"], 1, 1)
    assert script.main("2") == 1
    many = [f"tests/a.py::test_{number}" for number in range(script.SECOND_TRIES + 1)]
    seen = runs(script, monkeypatch, many, 1)
    assert script.main("2") == 1 and len(seen) == 1
    assert "passed only when run alone" not in capsys.readouterr().out
