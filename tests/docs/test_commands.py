"""Every command that the README, the docs and Leadline's own messages name is one that the command line takes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.docs.commands import ROOT, Block, blocks, inline, invocations, pages, shell_lines

from leadline.cli.errors import CommandError
from leadline.cli.main import parsed

SHELL = {"sh", "console", "bash", "shell"}
_PLACES = {"PID": "4711", "N": "4", "TIME": "10s", "SHELL": "bash", "X": "4711"}
"""What may stand where a command shows its form; X: what a message puts there."""
_MISSING = re.compile("the following arguments are required|expected (at least )?one argument")


def refused(words: list[str], *, whole: bool) -> str:
    """Why the command line does not take these words; empty where it does. `whole`: nothing may be left out."""
    named = [_PLACES.get(word.strip("[]"), word.strip("[]")) for word in words]
    if not named or {"--help", "--help-all", "--version"} & set(named) or words[0] in ("SUBCOMMAND", "X", "..."):
        return ""
    try:
        parsed(named)
    except CommandError as error:
        return "" if not whole and _MISSING.search(error.sentence) else error.sentence
    return ""


def test_what_a_line_of_a_shell_starts_is_found() -> None:
    assert invocations("A=1 leadline run 'a b' x.py 2>log; leadline report  # text") == [
        ["run", "a b", "x.py", "2"],
        ["report"],
    ]
    assert invocations("for i in 1 2; do leadline run x.py; done") == [["run", "x.py"]]
    assert invocations('cc -I"$(leadline tool --include)" a.c | tee') == [["tool", "--include"]]
    assert invocations("trace-cmd record leadline run x.py") == [["run", "x.py"]]
    assert list(inline("a `leadline\nreport` b ```\n`leadline x y`")) == ["leadline report", "leadline x y"]


def test_a_wrong_command_is_seen() -> None:
    assert refused(["reprot"], whole=False)
    assert refused(["report", "--tpo", "3"], whole=False)
    assert refused(["merge"], whole=True) and not refused(["merge"], whole=False)
    assert not refused(["why", "PID"], whole=True)


@pytest.mark.parametrize("block", [one for one in blocks() if one.language in SHELL], ids=str)
def test_commands_of_blocks_are_taken(block: Block) -> None:
    for line in shell_lines(block):
        for words in invocations(line):
            assert not refused(words, whole=True), line


def test_blocks_of_commands_are_blocks_for_a_shell() -> None:
    wrong = [
        f"{block}: {line}"
        for block in blocks()
        if block.language not in SHELL
        for line in block.lines
        if re.match(r"(\w+=\S* )?(leadline|make|pip|python) ", line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_sentences_are_taken(page: Path) -> None:
    for command in inline(page.read_text(encoding="utf-8")):
        for words in invocations(command):
            assert not refused(words, whole=False), command


def texts(path: Path) -> list[tuple[int, str]]:
    """Texts of a module, with X for what is put into them; none of a module without a command."""
    found: list[tuple[int, str]] = []
    if "`leadline" not in (source := path.read_text(encoding="utf-8")):
        return found
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            found.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            found.append((node.lineno, node.value))
    return found


def test_commands_in_messages_and_docstrings_are_taken() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {command}: {why}"
        for path in sorted((ROOT / "python/leadline").rglob("*.py"))
        for number, text in texts(path)
        for command in inline(text.replace("%%", "%"))
        for words in invocations(command)
        if (why := refused(words, whole=False))
    ]
    assert not wrong, "\n".join(wrong)
