"""The dispatcher: verbs, help, version, errors and closed pipes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.cli import main as cli
from leadline.cli.subcommands import ALIASES, GROUPS, HIDDEN, SUBCOMMANDS
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

LEADLINE = [sys.executable, "-m", "leadline.cli.main"]


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "run.leadline"
    write_profile(path, build("python main @ /a/t.py:1\n  operator aten::mm | time=5000 call_time=5000"))
    return path


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"leadline {leadline.__version__}\n"


def test_help_names_every_subcommand_in_its_group(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert [line[:-1] for line in text.splitlines() if line[:-1] in GROUPS] == list(GROUPS)
    for one in SUBCOMMANDS:
        assert f"  {one.name} " in text
        assert one.help in text


def test_no_arguments_names_the_first_subcommands(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split()[1] for line in err.splitlines() if line.startswith("  leadline ")] == [
        "why",
        "run",
        "report",
        "view",
    ]


@pytest.mark.parametrize("one", SUBCOMMANDS, ids=lambda one: one.name)
def test_every_subcommand_has_its_file_and_explains_itself(one, capsys):
    module = importlib.import_module(one.module)
    assert callable(module.add_arguments)
    assert callable(module.run)
    with pytest.raises(SystemExit) as left:
        cli.main([one.name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: leadline {one.name}")


MODES = [(one, mode) for one in SUBCOMMANDS for mode in one.modes]


def test_every_subcommand_file_is_listed():
    folder = Path(cli.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if "\ndef add_arguments" in path.read_text(encoding="utf-8")}
    listed = [one.module for one in (*SUBCOMMANDS, *HIDDEN)] + [mode.module for _, mode in MODES]
    assert files == {module.rpartition(".")[2] for module in listed}


@pytest.mark.parametrize(("one", "mode"), MODES, ids=lambda it: getattr(it, "name", None) or it.word)
def test_every_mode_explains_itself_and_is_named_by_its_subcommand(one, mode, capsys):
    for words, begins in (([one.name, mode.word], f"usage: leadline {one.name} {mode.word}"), ([one.name], "usage")):
        with pytest.raises(SystemExit) as left:
            cli.main([*words, "--help"])
        assert left.value.code == 0
        shown = capsys.readouterr().out
        assert shown.startswith(begins)
    assert f"leadline {one.name} {mode.word}" in shown and mode.help in shown


@pytest.mark.parametrize("old", ALIASES)
def test_names_of_earlier_versions_are_understood(old, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([old, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: leadline {' '.join(ALIASES[old])}")


@pytest.mark.parametrize(
    "words", [["report"], ["report", "--meta"], ["analyze"], ["query", "--sql", "FILE", "select 1"]]
)
def test_the_newest_profile_here_is_read_where_none_is_named(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if "FILE" not in words:
        assert cli.main(words) == 2
        assert capsys.readouterr().err == (
            "leadline: No FILE was given and this folder has no .leadline file; make one with `leadline run SCRIPT`.\n"
        )
    for age, name in enumerate(("new", "old")):
        write_profile(
            tmp_path / f"{name}.leadline", build(f"process {name} | pid=1\n  thread t\n    region r | time=5")
        )
        os.utime(tmp_path / f"{name}.leadline", (1000 - age, 1000 - age))
    assert cli.main(["new.leadline" if word == "FILE" else word for word in words]) == 0
    told = capsys.readouterr()
    assert "FILE" in words or told.err.startswith("leadline: reading new.leadline, the newest profile here\n")


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("reprot", "did you mean report?"),
        ("profile", "`leadline --help` lists the subcommands."),
        ("train.py", "for this file: leadline run train.py."),
    ],
)
def test_an_unknown_subcommand_gets_advice(typed, advice, capsys):
    assert cli.main([typed]) == 2
    assert capsys.readouterr().err == f"leadline: There is no subcommand {typed!r}; {advice}\n"


def test_starting_imports_nothing_heavy():
    code = (
        "import sys, leadline.cli.main as m\n"
        "try: m.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules) & {'numpy', 'rich', 'torch', 'leadline.profiles', 'leadline.report'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [["report", "{}"], ["report", "{}", "--format", "json"], ["export", "{}", "--format", "collapsed", "-o", "-"]],
)
def test_a_reader_that_has_gone_is_no_traceback(arguments, profile):
    read, write = os.pipe()
    os.close(read)
    command = [*LEADLINE, *(word.format(profile) for word in arguments)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.returncode == 141, "what a shell reports for SIGPIPE"
    assert done.stderr == ""


def test_interrupt_is_the_exit_code_of_a_shell(monkeypatch, profile):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("leadline.report.build_report", interrupted)
    assert cli.main(["report", str(profile)]) == 130
