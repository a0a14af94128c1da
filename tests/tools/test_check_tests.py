"""`tools/check_tests.py`: what it counts, and that more than is recorded is a sentence."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_tests.py"
spec = importlib.util.spec_from_file_location("check_tests", SCRIPT)
assert spec and spec.loader
check_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_tests)

# Not written out, so that this file does not count.
NAPS = "time." + "sleep(1)\nPROGRAM = 'from time import sleep; " + "sleep(2)'\n"
PRIVATE = """
from leadline.cli.main import _hidden, shown
from elsewhere import _other
monkeypatch.setattr(module, "_seen", None)
monkeypatch.setattr("leadline.x._seen", None)
monkeypatch.setattr(module, "open", None)
monkeypatch.setattr(module, "__name__", None)
"""


def test_sleeps_and_private_names_are_counted_by_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "test_a.py").write_text(NAPS)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "test_b.py").write_text(PRIVATE)
    assert check_tests.counted(tmp_path) == {"sleeps": {"one": 2}, "private names": {"two": 3}}


def test_more_than_recorded_is_a_sentence_and_less_is_none() -> None:
    recorded = {"sleeps": {"one": 2}}
    assert check_tests.problems({"sleeps": {"one": 2}, "private names": {}}, recorded) == []
    assert check_tests.problems({"sleeps": {"one": 3}, "private names": {"two": 1}}, recorded) == [
        "tests/one has 3 sleeps, more than the 2 of test_habits.json.",
        "tests/two has 1 private names, more than the 0 of test_habits.json.",
    ]
