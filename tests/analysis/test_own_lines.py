"""No finding and no remedy stands at a library's line where a line of the program's calls it or uses what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis import test_every_rule, test_findings
from tests.analysis.test_every_rule import PAIRS

from leadline.analysis.analyze import analyze
from leadline.analysis.case import Case
from leadline.analysis.installed import Installed
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

OWN = "/home/ada/train.py"
RULES = sorted(rule for rule, pair in PAIRS.items() if pair.line == 43)


def beside(folder: Path) -> str:
    """A file that was installed into the program's own folder."""
    package, record = folder / "lib/helper/core.py", folder / "lib/helper-1.0.dist-info/RECORD"
    package.parent.mkdir(parents=True)
    package.write_text("\n" * 60)
    record.parent.mkdir()
    record.write_text("helper/__init__.py,,\nhelper/core.py,sha256=0,61\n")
    return str(package)


def drawn(rule: str, library: str, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The rule's problem, with what it is about one call deeper, in a library."""

    def deeper(text: str) -> Profile:
        return build(text.replace(f"main @ {OWN}:43", f"core @ {library}:43"))

    for module in (test_every_rule, test_findings):
        monkeypatch.setattr(module, "build", deeper)
    return PAIRS[rule].problem()


@pytest.mark.parametrize("where", ["beside the program", "site-packages"])
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_names_a_library_where_the_program_calls_it(rule: str, where: str, tmp_path: Path, monkeypatch) -> None:
    library = beside(tmp_path) if where == "beside the program" else "/v/site-packages/helper/core.py"
    profile = drawn(rule, library, monkeypatch)
    tree = profile.tree
    placed = [one for one in analyze(profile, [rule], PAIRS[rule].settings) if one.lines]
    for one in placed:
        above = {tree.node(at).file for row in one.paths for at in tree.path_rows(row)}
        named = [line.file for line in one.lines]
        assert named[0] != library or OWN not in {*above, *named}, (one.title, named)
        assert one.change_line is not None and (one.change_line.file != library or OWN not in above)
    verdict = profile.verdict
    called = any(tree.node(row).file == library and OWN in _above(profile, row) for row in range(len(tree)))
    if called:
        assert verdict.place is None or verdict.place.file != library
        assert [fix.do for fix in verdict.fixes if fix.place is not None and fix.place.file == library] == []


def _above(profile: Profile, row: int) -> set[str]:
    return {profile.tree.node(at).file for at in profile.tree.path_rows(row)}


def test_what_was_installed_beside_a_program_is_known_by_its_record(tmp_path: Path) -> None:
    library = beside(tmp_path)
    own = tmp_path / "lib" / "mine.py"
    own.write_text("")
    installed = Installed()
    assert installed.path(library) == "helper/core.py"
    assert installed.path(str(own)) == "", "a file of the user's in the same folder"
    assert installed.path("/nowhere/train.py") == "" and installed.path("train.py") == ""
    profile = build(f"python core @ {library}:43\n  operator aten::mm | time=10/10 call_time=10/10")
    line = Case(profile).line(len(profile.tree) - 1)
    assert line is not None and line.short == "helper/core.py", "nothing calls it"


SOURCE = """\
import torch.nn as nn

conv = nn.Conv1d(8, 8, 3, padding=1)
same = nn.Conv1d(8, 8, 3, padding="same")


def encode(tokenizer, texts, how):
    return tokenizer(texts, {})
"""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('padding="max_length", max_length=256', 8),
        ("padding=True", 8),
        ("padding=how, truncation=True", 8),
        ("pad_to_max_length=True", 8),
        ("truncation=True", 43),
        ("padding=False", 43),
    ],
)
def test_padding_is_placed_where_the_program_asks_for_it(tmp_path: Path, arguments: str, line: int) -> None:
    """Not where a library that was imported, or a convolution, has an argument of that name; else where the model is
    called with the batch."""
    library = Path(beside(tmp_path))
    library.write_text("def table(rows):\n    return rows.render(padding=True)\n")
    file = tmp_path / "train.py"
    file.write_text(SOURCE.replace("{}", arguments))
    profile = build(
        f"""
process train.py | pid=5
  thread main | tid=5
    python encode @ {file}:8
      python table @ {library}:2 | cpu_sample=10/1
    python main @ {OWN}:43
      module net [Bert]
        operator aten::embedding | time=60000000/10 call_time=60000000/10
    python main @ {OWN}:44
      phase optimizer | time=10000000/10 call_time=10000000/10
""".lstrip("\n")
    )
    sums = {"batches": 10, "all": 8_000_000, "common": 6_000_000}
    profile.meta["available"] = {"torch": {"ok": True, "padding": sums}}
    (one,) = analyze(profile, ["padding"])
    assert [(one.lines[0].file, one.lines[0].line)] == [(str(file) if line == 8 else OWN, line)]
