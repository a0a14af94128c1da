"""Being told of an import that the program makes, without changing the import."""

import importlib
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from leadline.capture.import_hook import ImportHook


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "leadline_probe.py").write_text(
        "import os\nif os.environ.get('PROBE_FAILS'): raise ValueError('x')\nA = 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "leadline_probe", raising=False)
    return "leadline_probe"


def test_called_once_with_the_whole_module(package: str) -> None:
    seen: list[int] = []
    hook = ImportHook(package, lambda module: seen.append(module.A))
    hook.install()
    assert seen == []
    module = importlib.import_module(package)
    importlib.reload(module)
    assert seen == [1]
    assert hook not in sys.meta_path
    assert type(module.__spec__) is ModuleSpec
    assert not [name for name in vars(module.__spec__) if "leadline" in name]


def test_called_at_once_when_it_is_there(package: str) -> None:
    module = importlib.import_module(package)
    seen: list[ModuleType] = []
    ImportHook(package, seen.append).install()
    assert seen == [module]


def test_an_import_that_fails_may_be_tried_again(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ModuleType] = []
    hook = ImportHook(package, seen.append)
    hook.install()
    monkeypatch.setenv("PROBE_FAILS", "1")
    with pytest.raises(ValueError, match="x"):
        importlib.import_module(package)
    assert seen == []
    monkeypatch.delenv("PROBE_FAILS")
    module = importlib.import_module(package)
    assert seen == [module]


def test_two_wait_for_the_same_package(package: str) -> None:
    seen: list[tuple[str, int]] = []
    for name in ("first", "second"):
        ImportHook(package, lambda module, name=name: seen.append((name, module.A))).install()
    importlib.import_module(package)
    assert sorted(seen) == [("first", 1), ("second", 1)]
    assert not [finder for finder in sys.meta_path if isinstance(finder, ImportHook)]


def test_started_from_inside_the_import(package: str, tmp_path: Path) -> None:
    seen: list[int] = []
    hook = ImportHook(package, lambda module: seen.append(module.A))
    sys.modules["leadline_probe_hook"] = hook  # type: ignore[assignment]
    (tmp_path / "leadline_probe.py").write_text("import sys; sys.modules['leadline_probe_hook'].install(); A = 2")
    try:
        importlib.import_module(package)
    finally:
        del sys.modules["leadline_probe_hook"]
    assert seen == [2]


def test_no_call_after_uninstalling(package: str) -> None:
    seen: list[ModuleType] = []
    hook = ImportHook(package, seen.append)
    hook.install()
    hook.uninstall()
    importlib.import_module(package)
    assert seen == []


def test_a_package_that_is_not_there(package: str) -> None:
    hook = ImportHook("leadline_no_such_package", lambda module: None)
    hook.install()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("leadline_no_such_package")
    hook.uninstall()
    assert hook not in sys.meta_path


def test_what_goes_wrong_in_the_call_is_a_sentence_and_the_import_goes_on(package: str, capsys) -> None:
    def fails(module: ModuleType) -> None:
        raise AttributeError("no such class")

    ImportHook(package, fails).install()
    assert importlib.import_module(package).A == 1
    assert "leadline_probe differs from what this release of Leadline supports" in capsys.readouterr().err
    ImportHook(package, fails).install()
    assert "no such class" in capsys.readouterr().err
