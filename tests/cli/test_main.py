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
from leadline.cli.subcommands import GROUPS, SUBCOMMANDS
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


def test_every_subcommand_file_is_listed():
    folder = Path(cli.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if "\ndef add_arguments" in path.read_text(encoding="utf-8")}
    assert files == {one.module.rpartition(".")[2] for one in SUBCOMMANDS}


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("reprot", "did you mean report?"),
        ("profile", "`leadline --help` lists the subcommands."),
        ("train.py", "to profile a script: leadline run train.py."),
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
