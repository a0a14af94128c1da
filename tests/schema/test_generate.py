"""schema/generate.py: outputs are fresh, a change is noticed, and what is generated says what the schema says."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = ["native/base/schema_generated.h", "python/leadline/schema.py", "docs/schema.md"]


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "schema/generate.py"), "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ["schema/leadline.toml", *OUTPUTS]:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return tmp_path


def edit(tree: Path, old: str, new: str) -> None:
    path = tree / "schema/leadline.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated_schema", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated_schema"] = module
    spec.loader.exec_module(module)
    return module


def test_committed_outputs_are_fresh() -> None:
    assert generate(ROOT, "--check").returncode == 0


def test_a_changed_schema_is_noticed_and_generated(tree: Path) -> None:
    edit(tree, '"phase"]', '"phase", "daydream"]')
    stale = generate(tree, "--check")
    assert stale.returncode == 1
    assert all(name in stale.stderr for name in OUTPUTS)
    assert generate(tree).returncode == 0
    assert generate(tree, "--check").returncode == 0
    kinds = load(tree / OUTPUTS[1]).FrameKind
    assert max(kinds) == kinds.DAYDREAM
    assert str(kinds.DAYDREAM) == "daydream"
    assert "kDaydream = 14," in (tree / OUTPUTS[0]).read_text()


def test_a_hand_edited_output_is_noticed(tree: Path) -> None:
    with (tree / OUTPUTS[1]).open("a") as file:
        file.write("# by hand\n")
    assert generate(tree, "--check").returncode == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('type = "i16"', 'type = "i17"', "unknown type 'i17'"),
        ('ref = "strings"', 'ref = "stings"', "unknown table 'stings'"),
        ('"root", "process"', '"root", "root"', "stands there twice"),
        ('"root", "process"', '"Root", "process"', "not a lower-case name"),
    ],
)
def test_a_mistake_is_named(tree: Path, old: str, new: str, says: str) -> None:
    edit(tree, old, new)
    done = generate(tree)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_typescript_is_made_where_there_is_a_ui(tree: Path) -> None:
    (tree / "ui/model").mkdir(parents=True)
    assert generate(tree).returncode == 0
    text = (tree / "ui/model/schema.generated.ts").read_text()
    assert "export interface NodesTable" in text
    assert "readonly parent: Int32Array;" in text


def test_the_python_module_has_tables_and_units() -> None:
    schema = load(ROOT / "python/leadline/schema.py")
    nodes = schema.TABLES["nodes"]
    assert [(column.name, column.dtype) for column in nodes.columns] == [("parent", "<i4"), ("frame", "<u4")]
    assert [info.kind for info in schema.METRICS] == list(schema.MetricKind)
    time = schema.METRICS[schema.MetricKind.TIME]
    assert (time.unit, time.additive) == ("ns", True)


def test_a_former_name_of_a_metric_finds_it_and_is_never_said() -> None:
    kinds = load(ROOT / "python/leadline/schema.py").MetricKind
    assert kinds["CPU_TIME"] is kinds.TIME
    assert kinds(0) is kinds.TIME
    assert str(kinds["CPU_TIME"]) == "time"
    assert len(kinds) == len(list(kinds)) == len(kinds.__members__) - 1


def test_a_former_name_cannot_be_the_name_of_another_metric(tree: Path) -> None:
    edit(tree, 'formerly = "cpu_time"', 'formerly = "call_time"')
    refused = generate(tree)
    assert refused.returncode == 1
    assert "'call_time' stands there twice" in refused.stderr
