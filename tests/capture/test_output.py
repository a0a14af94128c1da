"""Names of files: what stops a measurement before it starts."""

import io
import zipfile
from pathlib import Path

import pytest

from leadline.capture.claim import claim
from leadline.capture.config import Options
from leadline.capture.errors import ProfileError
from leadline.capture.output import check_output, default_output
from leadline.capture.part import PartDirectory
from leadline.capture.records import StartedBy


def create(output: Path) -> PartDirectory:
    return claim(output, ["train.py", "--lr", "3"], Options(), StartedBy.SUPERVISOR).part


def package(**members: str) -> bytes:
    """A ZIP with these members; `meta` is `meta.json`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr("meta.json" if name == "meta" else name, text)
    return buffer.getvalue()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="does not exist"):
        create(tmp_path / "missing" / "a.leadline")


def test_an_output_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="is a folder"):
        create(tmp_path)


def test_a_folder_where_nothing_can_be_made() -> None:
    with pytest.raises(ProfileError, match="Cannot write"):
        create(Path("/proc/a.leadline"))


def test_somebody_elses_file_is_not_replaced(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print()")
    with pytest.raises(ProfileError, match="not a profile"):
        create(script)
    assert script.read_text() == "print()"


@pytest.mark.parametrize("content", [b"", package(meta='{"format": {"name": "leadline", "version": 77}}')])
def test_a_profile_may_be_replaced(tmp_path: Path, content: bytes) -> None:
    output = tmp_path / "a.leadline"
    output.write_bytes(content)
    check_output(output)


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04rest",
        package(**{"archive/data.pkl": "weights", "archive/version": "3"}),
        package(meta="[]"),
        package(meta='{"format": "leadline"}'),
        package(meta='{"format": {"name": "other"}}'),
        package(meta="{" * 100_000),
    ],
    ids=["damaged", "checkpoint", "list", "text", "other", "deep"],
)
def test_another_zip_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    """A checkpoint of torch.save is a ZIP too."""
    output = tmp_path / "model.pt"
    output.write_bytes(content)
    with pytest.raises(ProfileError, match="not a profile"):
        create(output)
    assert output.read_bytes() == content
    assert list(tmp_path.iterdir()) == [output]


def test_a_full_disk_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.capture.output.free_space_bytes", lambda folder: 1000)
    with pytest.raises(ProfileError, match="make room"):
        create(tmp_path / "a.leadline")
    assert list(tmp_path.iterdir()) == []


def test_names_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProfileError, match="File name too long"):
        create(tmp_path / ("x" * 300))
    with pytest.raises(ProfileError, match="not UTF-8"):
        create(tmp_path / "\udcff.leadline")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ProfileError, match="working directory is gone"):
        create(Path("a.leadline"))


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["train.py", "--lr"], "train.leadline"),
        (["some/folder/train.py"], "train.leadline"),
        (["-m"], "python.leadline"),
        ([], "python.leadline"),
        (["torchrun"], "torchrun.leadline"),
    ],
)
def test_the_default_name_is_the_scripts(argv: list[str], name: str) -> None:
    assert default_output(argv) == Path(name)
