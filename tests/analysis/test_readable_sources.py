"""A profile from a stranger shows no file of its reader: by no name, link, device or pipe, in no output."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from leadline.agent.answers import AnswerError, findings, source
from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile
from leadline.sources import ROOT_VARIABLE, readable_source

SECRET = "SECRET_TOKEN_hunter2 = 1\n"
DRAWN = """
process train.py | pid=7
  thread MainThread | tid=7 wall_ns=900000 operator_ns=900000
    python main @ FILE:1
      operator aten::mm | time=900000 call_time=900000
"""


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the reader stands; beside it lies what is nobody's business."""
    monkeypatch.delenv(ROOT_VARIABLE)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (tmp_path / "secret.py").write_text(SECRET)
    (tmp_path / "credentials").write_text(SECRET)
    (here / "link.py").symlink_to(tmp_path / "secret.py")
    (here / "link").symlink_to(tmp_path)
    (here / ".env").write_text(SECRET)
    os.mkfifo(here / "pipe.py")
    (here / "folder.py").mkdir()
    (here / "loop.py").symlink_to(here / "loop.py")
    (here / "large.py").write_bytes(SECRET.encode() + b"#" * (5 << 20))
    return here


def hostile(file: str, at: Path, **meta: object) -> Path:
    drawn = build(DRAWN.replace("FILE", file.replace(" ", "_")))
    path = at / "hostile.leadline"
    write_profile(path, Profile(drawn.tables, {**drawn.meta, **meta}))
    return path


FILES = (
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/kmsg",
    "/dev/zero",
    "/dev/stdin",
    "../secret.py",
    "../credentials",
    "link.py",
    "link/secret.py",
    ".env",
    "pipe.py",
    "folder.py",
    "loop.py",
    "large.py",
    "/proc/self/cwd/../secret.py",
)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_no_output_holds_text_of_another_file(
    file: str, absolute: bool, reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{reader}/{file}" if absolute and not file.startswith("/") else file
    path = hostile(name, reader, program={"cwd": "/" if absolute else str(reader)})
    for format_ in ("html", "json", "text"):
        assert main(["report", str(path), "--format", format_, "-o", f"out.{format_}"]) == 0
        made = Path(f"out.{format_}").read_text()
        assert "hunter2" not in made and "root:x:0" not in made
        Path(f"out.{format_}").unlink()
    assert main(["analyze", str(path), "--format", "sarif"]) == 0
    assert "hunter2" not in capsys.readouterr().out
    assert "hunter2" not in findings(str(path))
    with pytest.raises(AnswerError):
        source(str(path), name, 1)


def test_what_ran_is_shown_wherever_it_lies(reader: Path) -> None:
    file = reader.parent / "secret.py"
    known = {str(file): hashlib.sha256(SECRET.encode()).hexdigest()}
    found = readable_source(str(file), "", known)
    assert found is not None and found.data == SECRET.encode()
    path = hostile(str(file), reader, sources=known)
    assert main(["report", str(path), "-o", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "hunter2" in page and "1 source file is in this page" in page and str(file) in page
    assert main(["report", str(path), "-o", "page.html", "--no-source"]) == 0
    assert "hunter2" not in Path("page.html").read_text()


def test_another_hash_or_an_empty_one_shows_nothing(reader: Path) -> None:
    (reader / "mine.py").write_text(SECRET)
    for told in ("0" * 64, ""):
        found = readable_source("mine.py", "", {"mine.py": told})
        assert found is not None and found.changed and not found.data


@pytest.mark.parametrize("name", ["mine.py", "package/mine.cu"])
def test_files_below_the_working_directory_are_shown(name: str, reader: Path) -> None:
    (reader / "package").mkdir()
    (reader / name).write_text(SECRET)
    for file, cwd in ((name, ""), (name, str(reader)), (f"/elsewhere/{name}", "/elsewhere"), (str(reader / name), "")):
        found = readable_source(file, cwd, {})
        assert found is not None and found.data == SECRET.encode()


def test_a_folder_can_be_named(
    reader: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, "")
    path = hostile(str(reader.parent / "secret.py"), reader)
    assert main(["report", str(path), "-o", "page.html", "--source-root", str(reader.parent)]) == 0
    assert "hunter2" in Path("page.html").read_text()
    assert "1 source file is in the page" in capsys.readouterr().err
    assert main(["report", str(path), "-o", "page.html", "--source-root", "absent"]) == 2


def test_names_in_the_list_of_files_are_text(reader: Path) -> None:
    file = reader / "a<b>.py"
    file.write_text(SECRET)
    path = hostile(str(file), reader)
    assert main(["report", str(path), "-o", "page.html"]) == 0
    listed = Path("page.html").read_text().partition("<details")[2].partition("</details>")[0]
    assert "a&lt;b&gt;.py" in listed and json.dumps("a<b>.py") not in listed
