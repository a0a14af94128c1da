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


def test_help_names_every_verb(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    for verb in cli.VERBS:
        assert f"  {verb.name} " in text
        assert verb.help in text


def test_no_arguments_is_help_on_stderr_and_an_error(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "verbs:" in err


@pytest.mark.parametrize("verb", cli.VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_its_file_and_explains_itself(verb, capsys):
    module = importlib.import_module(verb.module)
    assert callable(module.add_arguments)
    assert callable(module.run)
    with pytest.raises(SystemExit) as left:
        cli.main([verb.name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: leadline {verb.name}")


def test_every_verb_file_is_listed():
    folder = Path(cli.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if "\ndef add_arguments" in path.read_text(encoding="utf-8")}
    assert files == {verb.module.rpartition(".")[2] for verb in cli.VERBS}


def test_an_unknown_verb_lists_the_known_ones(capsys):
    assert cli.main(["profile"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("leadline: There is no verb 'profile'; the verbs are run, report, view, analyze, ")
    assert err.count("\n") == 1


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
