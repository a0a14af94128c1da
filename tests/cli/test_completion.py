"""What a shell offers behind `leadline`, and what a project sets in pyproject.toml."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from leadline.cli.errors import CommandError
from leadline.cli.main import main
from leadline.cli.settings import from_pyproject
from leadline.cli.subcommands import SUBCOMMANDS


def offered(script: str, words: list[str], tmp_path: Path) -> set[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    line = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _leadline; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{line}"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20
    )
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_offers_subcommands_options_and_files(tmp_path, capsys):
    (tmp_path / "train.py").touch()
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert offered(script, ["leadline", "re"], tmp_path) == {"report", "recover", "redact"}
    assert {"--trace", "--shapes", "--roll", "--tool", "--output"} <= offered(
        script, ["leadline", "run", "--"], tmp_path
    )
    assert offered(script, ["leadline", "timeline", "--st"], tmp_path) == {"--stats", "--step"}
    assert offered(script, ["leadline", "run", "tr"], tmp_path) == {"train.py"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_too(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(one.name in script for one in SUBCOMMANDS)


def test_a_project_sets_what_is_measured(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.leadline]\nshapes = true\nno-memory = false\nbudget = '1%'\ncounter = ['cycles', 'page-faults']\n"
        "[tool.leadline.why]\nsteps = 40\n"
    )
    asked = ["--shapes", "--budget=1%", "--counter=cycles", "--counter=page-faults"]
    assert from_pyproject("run", tmp_path) == asked
    assert from_pyproject("why", tmp_path) == ["--steps=40"]
    assert from_pyproject("report", tmp_path) == []


@pytest.mark.parametrize("name", ["output", "tool", "endpoint", "force", "accelerator"])
def test_a_project_chooses_no_files_and_no_code(name, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f"[tool.leadline]\n{name} = 'x'\n")
    with pytest.raises(CommandError, match=f"cannot set '{name}' of `leadline run`"):
        from_pyproject("run", tmp_path)


def test_a_pyproject_that_is_no_toml_is_one_sentence(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.leadline]\nshapes = \n")
    with pytest.raises(CommandError, match=r"^pyproject.toml cannot be read: .*\.$"):
        from_pyproject("run", tmp_path)
