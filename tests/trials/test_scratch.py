"""Where runs write: an overlay, a copy up to a limit, in place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leadline.trials import scratch as module
from leadline.trials.model import TrialError
from leadline.trials.scratch import COPY, IN_PLACE, OVERLAY, Scratch


def _write(scratch: Scratch, folder: Path) -> None:
    with scratch.place(str(folder)) as place:
        words = place.words(["sh", "-c", "test -f a.txt && echo changed > a.txt && echo new > b.txt && rm -r sub"])
        subprocess.run(words, cwd=place.folder, check=True)


@pytest.mark.parametrize("way", [OVERLAY, COPY])
def test_every_run_finds_the_directory_as_it_is_and_leaves_it_so(tmp_path: Path, way: str) -> None:
    if way == OVERLAY and Scratch().way(str(tmp_path)) != OVERLAY:
        pytest.skip("this system allows no overlay to an ordinary user")
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("as it was")
    scratch = Scratch(way=way)
    _write(scratch, tmp_path)
    _write(scratch, tmp_path)
    scratch.close()
    assert (tmp_path / "a.txt").read_text() == "as it was"
    assert {one.name for one in tmp_path.iterdir()} == {"a.txt", "sub"}
    assert not scratch.base.exists()


def test_paths_into_a_copied_directory_lead_to_the_copy(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    scratch = Scratch(way=COPY)
    with scratch.place(str(tmp_path)) as place:
        words = place.words(["python", str(tmp_path / "train.py"), "--data", "/elsewhere"])
        assert words == ["python", f"{place.folder}/train.py", "--data", "/elsewhere"]
        assert place.folder != str(tmp_path)
    scratch.close()


def test_a_directory_too_large_for_copies_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 2)
    monkeypatch.setattr(Scratch, "_overlay_works", lambda self, folder: False)
    for number in range(4):
        (tmp_path / str(number)).write_text("")
    scratch = Scratch()
    with pytest.raises(TrialError, match="--in-place"):
        scratch.way(str(tmp_path))
    scratch.close()


def test_in_place_runs_where_the_program_runs(tmp_path: Path) -> None:
    scratch = Scratch(in_place=True)
    with scratch.place(str(tmp_path)) as place:
        assert (place.folder, scratch.way(str(tmp_path))) == (str(tmp_path), IN_PLACE)
    scratch.close()
