"""No verb replaces what it reads, nor a file of another kind; every output of every verb, against every such file."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline import _output
from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

TRACE = '{"schemaVersion": 1, "traceEvents": [%s]}' % ", ".join(  # noqa: UP031 - braces
    f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {10 * at}, "dur": 5}}'
    for at in range(5)
)
DRAWN = """
process train.py | pid=7
  thread MainThread | tid=7 wall_ns=9000 operator_ns=5000
    python main @ /a/train.py:3
      operator aten::mm #mm | time=5000 call_time=5000
"""
WINDOW = """
start_ns duration_ns kind     node thread device stream
10       9           operator mm   0      -1     -1
30       9           operator mm   0      -1     -1
"""
TEXTS = (
    "report IN",
    "report IN --format markdown",
    "report IN --format json",
    "report IN --format html",
    "analyze IN",
    "analyze IN --format sarif",
    "analyze IN --format html",
    "analyze --list",
    "query IN operator:*",
    "query IN operator:* --format csv",
    "query IN operator:* --format json",
    "diff IN IN",
    "diff IN IN --format html",
    "summary IN",
    "summary IN --json",
    "timeline IN",
    "timeline IN --csv",
    "stats IN --csv",
    "whatif --list",
    "export IN --format collapsed",
    "export IN --format speedscope",
    "export IN --format pprof",
    "export IN --format perfetto",
)
PROFILES = ("merge IN", "redact IN", "symbolize NATIVE", "import TRACE", "join TOOLS IN", "recover PART")
IN_PLACE = ("analyze TRACE --save", "symbolize TRACE")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What verbs read, by the word that stands for it above."""
    found = {"IN": tmp_path / "in.leadline", "TRACE": tmp_path / "trace.json", "OTHER": tmp_path / "other.leadline"}
    for name in ("IN", "OTHER"):
        write_profile(found[name], build(DRAWN, events=WINDOW))
    found["TRACE"].write_text(TRACE)
    return found


def words(command: str, files: dict[str, Path]) -> list[str]:
    return [str(files.get(word, word)) for word in command.split()]


def a_checkpoint(place: Path, files: dict[str, Path]) -> None:
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02weights")


def the_input(place: Path, files: dict[str, Path]) -> None:
    files["IN"] = files["IN"].rename(place)


def a_hard_link(place: Path, files: dict[str, Path]) -> None:
    place.hardlink_to(files["IN"])


def a_symbolic_link(place: Path, files: dict[str, Path]) -> None:
    place.symlink_to(files["IN"])


def a_trace(place: Path, files: dict[str, Path]) -> None:
    place.write_text(TRACE)


def another_profile(place: Path, files: dict[str, Path]) -> None:
    shutil.copy(files["OTHER"], place)


def a_script(place: Path, files: dict[str, Path]) -> None:
    place.write_text("import leadline\nprint(1)\n")


def a_readme(place: Path, files: dict[str, Path]) -> None:
    place.write_text("# Our model\n\nHow to train it.\n")


def notes_that_name_us(place: Path, files: dict[str, Path]) -> None:
    place.write_text("# Leadline\n\nWhat `leadline report` said of our model, and what we make of it.\n")


def a_page_that_names_us(place: Path, files: dict[str, Path]) -> None:
    place.write_text("<!DOCTYPE html><title>Our model</title>Measured with Leadline.")


def settings_with_a_schema(place: Path, files: dict[str, Path]) -> None:
    place.write_text('{"$schema": "https://json.schemastore.org/tsconfig", "files": ["leadline.ts"]}')


def a_table(place: Path, files: dict[str, Path]) -> None:
    place.write_text("rank,score\n0,17\n")


def a_pickle(place: Path, files: dict[str, Path]) -> None:
    place.write_bytes(b"\x80\x04weights" + bytes(100))


def a_folder(place: Path, files: dict[str, Path]) -> None:
    (place / "kept").mkdir(parents=True)


Planted = Callable[[Path, dict[str, Path]], None]
OWN = (the_input, a_hard_link, a_symbolic_link)
TEXTUAL = (notes_that_name_us, a_page_that_names_us, settings_with_a_schema, a_table)
FOREIGN = (a_checkpoint, a_trace, a_script, a_readme, a_pickle, a_folder)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("plant", [*OWN, *FOREIGN, *TEXTUAL, another_profile], ids=lambda one: one.__name__)
@pytest.mark.parametrize("verb", TEXTS)
def test_a_report_replaces_nothing_else(
    verb: str, plant: Planted, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = files["IN"].with_name("out")
    plant(place, files)
    before = contents(place.parent)
    if "IN" not in verb and plant in OWN:
        return  # it reads nothing
    assert main([*words(verb, files), "-o", str(place)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(place) in said
    assert contents(place.parent) == before


@pytest.mark.parametrize("plant", [*OWN, *FOREIGN], ids=lambda one: one.__name__)
@pytest.mark.parametrize("verb", ["merge IN", "redact IN", "import TRACE"])
def test_a_profile_replaces_profiles_only_and_not_its_own(
    verb: str, plant: Planted, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = files["IN"].with_name("out")
    if "TRACE" in verb and plant in OWN:
        files = {**files, "IN": files["TRACE"]}
    plant(place, files)
    if "TRACE" in verb and plant in OWN:
        files["TRACE"] = files["IN"]
    before = contents(place.parent)
    assert main([*words(verb, files), "-o", str(place)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(place) in said
    assert contents(place.parent) == before


@pytest.mark.parametrize("verb", ["merge IN", "redact IN", "import TRACE"])
def test_a_profile_may_replace_an_older_one(verb: str, files: dict[str, Path]) -> None:
    assert main([*words(verb, files), "-o", str(files["OTHER"])]) == 0


@pytest.mark.parametrize("verb", TEXTS)
def test_the_same_command_may_run_again_and_force_replaces(verb: str, files: dict[str, Path]) -> None:
    place = files["IN"].with_name("out")
    assert main([*words(verb, files), "-o", str(place)]) == 0
    assert main([*words(verb, files), "-o", str(place)]) == 0
    made = place.read_bytes()
    place.write_text("print(1)")
    assert main([*words(verb, files), "-o", str(place), "--force"]) == 0
    assert len(place.read_bytes()) >= len(made) - 64  # a page may hold when it was made
    assert sorted(one.name for one in place.parent.iterdir()) == ["in.leadline", "other.leadline", "out", "trace.json"]


@pytest.mark.parametrize("verb", IN_PLACE)
def test_findings_and_names_are_kept_in_profiles_only(verb: str, files: dict[str, Path]) -> None:
    main(words(verb, files))
    assert files["TRACE"].read_text() == TRACE


def test_a_trace_is_told_how_to_become_a_profile(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(files["TRACE"]), "--save"]) == 2
    assert f"leadline import {files['TRACE']}" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["FOLDER", "FOLDER/*.leadline"])
def test_a_rank_that_a_folder_or_a_pattern_names_is_not_replaced(asked: str, files: dict[str, Path]) -> None:
    before = contents(files["IN"].parent)
    assert main(["merge", asked.replace("FOLDER", str(files["IN"].parent)), "-o", str(files["OTHER"])]) == 2
    assert contents(files["IN"].parent) == before


@pytest.mark.parametrize("verb", ["report IN", "redact IN"])
def test_a_planted_link_is_replaced_and_not_followed(verb: str, files: dict[str, Path]) -> None:
    place, target = files["IN"].with_name("out"), files["IN"].with_name("target")
    place.symlink_to(target)
    assert main([*words(verb, files), "-o", str(place)]) == 0
    assert place.is_file() and not place.is_symlink() and not target.exists()


@pytest.mark.parametrize("verb", ["merge IN", "redact IN", "import TRACE", "recover IN"])
def test_a_profile_does_not_go_to_standard_output(
    verb: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(verb, files), "-o", "-"]) == 2
    assert "standard output" in capsys.readouterr().err
    assert not Path("-").exists()


@pytest.mark.parametrize("verb", ["report IN", "redact IN", "import TRACE", "export IN --format collapsed"])
def test_a_name_may_be_as_long_as_the_system_allows_and_no_longer(
    verb: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    longest = os.pathconf(files["IN"].parent, "PC_NAME_MAX")
    assert main([*words(verb, files), "-o", str(files["IN"].with_name("n" * longest))]) == 0
    capsys.readouterr()
    assert main([*words(verb, files), "-o", str(files["IN"].with_name("n" * (longest + 1)))]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_devices_are_written_to_by_reports_and_never_replaced(files: dict[str, Path]) -> None:
    assert main(["report", str(files["IN"]), "-o", "/dev/null"]) == 0
    assert main(["redact", str(files["IN"]), "-o", "/dev/null"]) == 2
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def leadline(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leadline", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("verb", ["report IN", "report IN -o /dev/full", "query IN operator:*", "whatif --list"])
def test_a_full_disk_is_one_sentence(verb: str, files: dict[str, Path]) -> None:
    with Path("/dev/full").open("w") as full:
        done = leadline(*words(verb, files), stdout=full)
    assert done.returncode == 2 and "No space left" in done.stderr and done.stderr.count("\n") == 1


def test_what_a_run_cannot_write_is_said_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("print('ran')")
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    for output, said, limit in (
        ("-", "standard output", None),
        (f"{'n' * (longest - 9)}.leadline", "shorter", None),
        ("x.leadline", "ulimit -f", small_files),
    ):
        done = leadline("run", "-o", output, "p.py", stdout=subprocess.PIPE, cwd=tmp_path, preexec_fn=limit)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and said in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["p.py"]


def test_a_file_beside_it_is_new_and_has_a_name_that_nobody_guesses(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        with _output.replacing(tmp_path / "out") as file:
            names.add(Path(f"/proc/self/fd/{file.fileno()}").readlink().name)
    assert len(names) == 3 and all(len(name) > 20 for name in names)
    (tmp_path / "there").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        _output.open_new(tmp_path / "there")
