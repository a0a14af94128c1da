"""`tools/test_python.py`: only a listed test gets a second try; what fails twice, or is not listed, fails the run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "test_python.py"
LISTED = "tests/a.py::test_b"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_python_script", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LAST_FAILED", tmp_path / "lastfailed")
    monkeypatch.setattr(module, "FLAKY", tmp_path / "flaky.json")
    module.FLAKY.write_text(json.dumps({LISTED: {"owner": "somebody", "reason": "rests on load"}}))
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


def test_a_listed_test_that_passes_alone_is_named(script, monkeypatch, capsys) -> None:
    seen = runs(script, monkeypatch, [f"{LISTED}[x - y]"], 1, 0)
    assert script.main("2") == 0
    assert seen[1] == (f"{LISTED}[x - y]",)
    assert f"{LISTED}[x - y] passed only when run alone" in capsys.readouterr().out


def test_a_test_that_is_not_listed_fails_the_run_and_is_named(script, monkeypatch, capsys) -> None:
    seen = runs(script, monkeypatch, [LISTED, "tests/a.py::test_c"], 1, 0)
    assert script.main("2") == 1 and len(seen) == 1
    assert capsys.readouterr().out == "tests/a.py::test_c failed, and flaky.json does not list it.\n"


@pytest.mark.parametrize("status", [0, 2, 4, 5, 6])
def test_only_failures_are_tried_again(script, monkeypatch, status: int) -> None:
    seen = runs(script, monkeypatch, [LISTED], status)
    assert script.main("2") == status and len(seen) == 1


def test_what_fails_twice_fails(script, monkeypatch, capsys) -> None:
    runs(script, monkeypatch, [LISTED], 1, 1)
    assert script.main("2") == 1
    assert "passed only when run alone" not in capsys.readouterr().out


def test_a_row_without_an_owner_is_refused(script, monkeypatch) -> None:
    script.FLAKY.write_text(json.dumps({LISTED: {"reason": "rests on load"}}))
    runs(script, monkeypatch, [LISTED], 1)
    with pytest.raises(ValueError, match="needs an owner"):
        script.main("2")


def test_every_listed_test_is_there() -> None:
    for test in json.loads((ROOT / "tests" / "flaky.json").read_text()):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), test
