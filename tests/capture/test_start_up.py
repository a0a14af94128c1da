"""What a process pays before its first line: modules are counted, since their times depend on what else a machine does."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.report.drawings import training

from leadline._dataclass import asdict, dataclass, field, replace
from leadline.capture.config import Options
from leadline.profiles import write_profile

NOT_FOR_A_SHORT_PROGRAM = {
    "dataclasses",
    "hashlib",
    "inspect",
    "numpy",
    "random",
    "shutil",
    "ssl",
    "subprocess",
    "tempfile",
    "leadline.capture.budget",
    "leadline.capture.claim",
    "leadline.capture.endpoint",
    "leadline.capture.hang_watch",
    "leadline.capture.providers.torch.inductor",
    "leadline.capture.providers.jax.provider",
    "leadline.capture.providers.tensorflow.provider",
    "leadline.capture.providers.torch.provider",
    "leadline.tools",
}
_LIST = "import sys, json; json.dump(sorted(sys.modules), open({file!r}, 'w'))"


def _modules(code: str, file: Path, *command: str) -> set[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    text = f"{code}\n{_LIST.format(file=str(file))}"
    subprocess.run([*command, sys.executable, "-c", text], env=environment, check=True, timeout=60, cwd=file.parent)
    return set(json.loads(file.read_text()))


def test_importing_leadline_imports_nothing(tmp_path: Path) -> None:
    before = _modules("import importlib.util, importlib.machinery", tmp_path / "before.json")
    after = _modules("import leadline", tmp_path / "after.json")
    assert after - before <= {"leadline", "leadline._version"}


def test_a_process_without_the_variable_runs_no_line_of_ours(tmp_path: Path) -> None:
    assert not [name for name in _modules("", tmp_path / "found.json") if name.startswith("leadline")]


def test_a_measured_process_loads_what_it_uses(tmp_path: Path) -> None:
    run = (sys.executable, "-m", "leadline", "run", "-q", "-o", str(tmp_path / "x.leadline"), "--")
    found = _modules("", tmp_path / "found.json", *run)
    assert "leadline.capture.session" in found
    assert not found & NOT_FOR_A_SHORT_PROGRAM


def test_the_supervisor_loads_what_it_uses(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom leadline.cli.main import main\n"
        f"main(['run', '-q', '-o', {str(tmp_path / 'x.leadline')!r}, '--', '/bin/true'])"
    )
    found = _modules(code, tmp_path / "found.json")
    assert not found & {"dataclasses", "inspect", "numpy", "random", "subprocess", "tempfile", "leadline.report"}


NOT_TO_READ_A_PROFILE = {
    *("csv", "difflib", "email", "html", "importlib.metadata", "importlib.resources", "socket", "subprocess"),
    *("tempfile", "leadline.report.findings.html", "leadline.report.findings.sarif"),
}


@pytest.mark.parametrize(
    ("verb", "most", "others"),
    [
        ("report", 204, set()),
        ("analyze", 155, {"rich", "leadline.report.build"}),
        ("why", 162, {"rich", "leadline.report.build"}),
    ],
)
def test_what_a_verb_that_reads_imports_has_a_limit(tmp_path: Path, verb: str, most: int, others: set[str]) -> None:
    """Modules of ours but rules, which are a file each; whoever adds a package to a report's way pays for it with the
    time of every report.
    """
    file = tmp_path / "x.leadline"
    write_profile(file, training())
    code = f"from leadline.cli.main import main\nmain([{verb!r}, {str(file)!r}])"
    found = _modules(code, tmp_path / "found.json")
    assert not found & (NOT_TO_READ_A_PROFILE | others)
    assert not [name for name in found if name.startswith(("leadline.trace.importers", "leadline.whatif.scenarios"))]
    rules = "leadline.analysis.rules."
    assert len([name for name in found if name.startswith("leadline.") and not name.startswith(rules)]) <= most


def test_entry_points_are_those_that_python_finds(tmp_path: Path) -> None:
    """Also where a look at the files says that there are none."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[leadline.rules]\nmine = theirs:Mine\n")
    code = (
        "import sys, importlib.metadata as m; from leadline._installed import entry_points as ours\n"
        "sys.meta_path = [one for one in sys.meta_path if type(one).__module__ != '_leadline_editable']\n"
        "for group in ('leadline.rules', 'leadline.tools', 'console_scripts', 'nobody.has'):\n"
        "    assert sorted(ours(group)) == sorted(m.entry_points(group=group)), group\n"
        "assert [one.name for one in ours('leadline.rules')] == ['mine']"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_options_are_what_dataclasses_makes_of_them() -> None:
    options = Options(shapes=True)
    assert [one.name for one in dataclasses.fields(Options)] == list(Options.__annotations__)
    assert dataclasses.asdict(options) == asdict(options) == options.asked()
    assert dataclasses.replace(options, shapes=False) == replace(options, shapes=False) == Options()
    assert hash(options) == hash(Options(shapes=True)) != hash(Options())
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.shapes = False  # type: ignore[misc]


def test_values_that_are_missing_or_unknown_are_refused() -> None:
    @dataclass
    class Pair:
        first: int
        second: list[int] = field(default_factory=list)

    assert Pair(1) == Pair(first=1, second=[])
    assert Pair(1).second is not Pair(1).second
    assert repr(Pair(2)).endswith("Pair(first=2, second=[])")
    for values, named in (((), {}), ((1, [], 3), {}), ((1,), {"first": 2}), ((1,), {"third": 2})):
        with pytest.raises(TypeError):
            Pair(*values, **named)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        hash(Pair(1))


@dataclass
class _Many:
    self: int
    found: tuple[int, ...] = ()
    each: list[int] = field(default_factory=list)
    hidden: int = field(default=3, repr=False)

    def __post_init__(self) -> None:
        self.twice = 2 * self.self


class _Pair(NamedTuple):
    left: int
    right: _Many


@dataclasses.dataclass
class _Standard:
    inside: object


def test_a_class_of_many_objects_gets_a_constructor_of_its_own_which_does_the_same() -> None:
    shared = _Many.__init__
    made = [_Many(number, each=[number]) for number in range(200)]
    assert _Many.__init__ is not shared
    assert [one.twice for one in made] == [2 * number for number in range(200)]
    assert made[3] == _Many(3, (), [3], 3) and made[150] == _Many(150, each=[150]) != made[3]
    assert _Many(1).each is not _Many(1).each and _Many(self=1, found=(2,)).found == (2,)
    assert repr(made[199]) == repr(made[3]).replace("3", "199") == "_Many(self=199, found=(), each=[199])"
    for values, named in (((), {}), ((1, (), [], 3, 4), {}), ((1,), {"self": 2}), ((1,), {"other": 2})):
        with pytest.raises(TypeError):
            _Many(*values, **named)  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(made)) == made


def test_classes_of_both_kinds_are_taken_apart_inside_each_other() -> None:
    expected = {"inside": (1, {"self": 2, "found": (), "each": [], "hidden": 3})}
    both = _Standard(_Pair(1, _Many(2)))
    assert asdict(both) == dataclasses.asdict(both) == expected
    assert isinstance(asdict(both)["inside"], _Pair)
    assert asdict(_Many(1, (_Standard(2),)))["found"] == ({"inside": 2},)  # type: ignore[arg-type]
    assert replace(both, inside=1) == _Standard(1)
