"""`leadline report` and `leadline export`: formats, files, and every way to be given something wrong."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.writer import write_profile

TREE = """
python main @ /home/ada/train.py:3
  module model.0 [Linear]
    operator aten::linear | time=4000 call_time=6000 alloc_bytes=64
  module model.1 [Linear]
    operator aten::linear | time=2000 call_time=2000 alloc_bytes=64
  operator aten::sum | time=1000 call_time=1000
"""


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "run.leadline"
    write_profile(path, build(TREE))
    return path


def sentence(capsys):
    """The one line on stderr; nothing on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("leadline: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_text_goes_to_stdout(profile, capsys):
    assert main(["report", str(profile)]) == 0
    out = capsys.readouterr().out
    assert "model.* (Linear, 2 modules) › aten::linear" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!DOCTYPE html>"), ("r.json", "{"), ("r.md", "## Leadline"), ("r.txt", "Leadline")]
)
def test_the_format_follows_the_file_name(name, begins, profile, tmp_path, capsys):
    assert main(["report", str(profile), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert capsys.readouterr().out == ""
    assert {path.name for path in tmp_path.iterdir()} == {"run.leadline", name}


def test_json_on_stdout_can_be_parsed(profile, capsys):
    assert main(["report", str(profile), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"][0]["name"] == "aten::linear"


def test_options_reach_the_report(profile, capsys):
    assert main(["report", str(profile), "--sort", "count", "--top", "1", "--focus", "model", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["sort"], report["focus"]["pattern"], len(report["operators"])) == ("count", "model", 1)


def test_programs_get_everything_and_people_ten_rows(tmp_path, capsys):
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    for i in range(40):
        operator = builder.child(node, builder.frame("operator", f"op{i}"))
        builder.add(operator, "time", 10)
        builder.add(operator, "call_time", 10)
    path = tmp_path / "many.leadline"
    write_profile(path, builder.profile())
    assert main(["report", str(path), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["operators"]) == 40
    assert main(["report", str(path)]) == 0
    assert "30 more operators: --top N shows them" in capsys.readouterr().out


def test_an_unknown_metric_lists_the_known_ones(profile, capsys):
    assert main(["report", str(profile), "--sort", "seconds"]) == 2
    assert "no metric 'seconds' to sort by; it has time, alloc_bytes, count, call_time." in sentence(capsys)
    assert main(["export", str(profile), "-o", "x.folded", "--metric", "seconds"]) == 2
    assert "it has time, alloc_bytes." in sentence(capsys)


def test_the_former_name_of_time_is_understood(profile, tmp_path, capsys):
    assert main(["report", str(profile), "--sort", "cpu_time"]) == 0
    former = capsys.readouterr().out
    assert main(["report", str(profile), "--sort", "time"]) == 0
    assert capsys.readouterr().out == former
    for metric in ("cpu_time", "time"):
        assert main(["export", str(profile), "-o", str(tmp_path / f"{metric}.folded"), "--metric", metric]) == 0
    assert (tmp_path / "cpu_time.folded").read_text() == (tmp_path / "time.folded").read_text()


def test_a_bad_pattern(profile, capsys):
    assert main(["report", str(profile), "--focus", "a("]) == 2
    assert "'a(' is not a regular expression" in sentence(capsys)


@pytest.mark.parametrize("top", ["0", "-3", "many", "1.5"])
def test_a_number_of_rows_that_is_none(top, profile, capsys):
    assert main(["report", str(profile), "--top", top]) == 2
    assert "is not a number of rows; give 1 or more" in capsys.readouterr().err


def missing(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:200])


def foreign(path):
    path.write_bytes(b"\x7fELF" + bytes(500))


def other_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")


def folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [missing, empty, cut, foreign, other_zip, folder], ids=lambda f: f.__name__)
@pytest.mark.parametrize("verb", [["report"], ["export", "-o", "out.folded"]], ids=["report", "export"])
def test_a_file_that_is_no_profile(spoil, verb, profile, capsys):
    spoil(profile)
    assert main([*verb, str(profile)]) == 2
    assert profile.name in sentence(capsys)


def test_places_that_cannot_be_written(profile, tmp_path, capsys):
    for output in (tmp_path / "no" / "such" / "folder.json", tmp_path):
        assert main(["report", str(profile), "--format", "json", "-o", str(output)]) == 2
        assert f"Cannot write {output}: " in sentence(capsys)
    assert {path.name for path in tmp_path.iterdir()} == {"run.leadline"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full to stand for a full disk.")
def test_a_full_disk(profile, capsys):
    assert main(["export", str(profile), "--format", "pprof", "-o", "/dev/full"]) == 2
    assert "Cannot write /dev/full: No space left on device" in sentence(capsys)


def test_an_old_result_is_replaced_whole(profile, tmp_path):
    output = tmp_path / "r.json"
    assert main(["report", str(profile), "-o", str(output)]) == 0
    fresh = output.read_text()
    output.write_text(fresh[:-10] + "old " * 100_000)
    assert main(["report", str(profile), "-o", str(output)]) == 0
    assert output.read_text() == fresh


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("r.speedscope.json", b'{"$schema"'),
        ("r.folded", b"program;MainThread;"),
        ("r.collapsed", b"program;MainThread;"),
        ("r.cpuprofile", b'{"nodes"'),
        ("r.hatchet.json", b'[{"frame"'),
        ("r.pb.gz", b"\x1f\x8b"),
    ],
)
def test_exports_by_file_name(name, begins, profile, tmp_path):
    assert main(["export", str(profile), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_an_export_to_stdout(profile, capsysbinary):
    assert main(["export", str(profile), "--format", "pprof", "-o", "-"]) == 0
    assert b"aten::linear" in gzip.decompress(capsysbinary.readouterr().out)


def test_a_name_that_says_no_format(profile, capsys):
    assert main(["export", str(profile), "-o", "out.dat"]) == 2
    assert (
        "add --format with one of speedscope, collapsed, pprof, otlp, cpuprofile, hatchet, perfetto, chrome, "
        "perfetto-archive, ctf, ctf2." in sentence(capsys)
    )


def test_an_html_page_is_not_poured_onto_a_terminal(profile, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["report", str(profile), "--format", "html"]) == 2
    assert "write it to a file with -o NAME.html" in capsys.readouterr().err
