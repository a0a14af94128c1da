"""What the pages say is so: links lead somewhere, commands exist, and the code about the file runs on a real file."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import pytest

from leadline.cli.subcommands import SUBCOMMANDS
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.profiles.writer import write_profile

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "bench", "python", "native", "tests", "tools", "schema", "requirements")
FOUND = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
PAGES = sorted(path for path in FOUND if "node_modules" not in path.parts)
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [code for name, code in BLOCK.findall(text) if name == language]


def anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(path), f"{page.name} links to {link}, no heading of {path.name}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/getting-started.md"])
def test_commands_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z][a-z0-9 -]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    commands = [line for code in blocks(page, "sh") for line in code.splitlines()] + re.findall(r"`([^`\n]+)`", text)
    makes = {words[1] for words in map(str.split, commands) if words[:1] == ["make"] and len(words) > 1}
    verbs = {words[1] for words in map(str.split, commands) if words[:1] == ["leadline"] and len(words) > 1}
    assert makes <= targets
    assert {verb for verb in verbs if not verb.startswith("-")} <= {one.name for one in SUBCOMMANDS}


def test_options_exist() -> None:
    import importlib

    for page in ("README.md", "docs/getting-started.md"):
        for line in "\n".join(blocks(page, "sh")).splitlines():
            words = line.partition("#")[0].split()
            if words[:1] != ["leadline"] or len(words) < 2:
                continue
            verb = next(one for one in SUBCOMMANDS if one.name == words[1])
            parser = argparse.ArgumentParser(prog=verb.name)
            module = importlib.import_module(verb.module)
            module.add_arguments(parser)
            arguments = re.findall(r"'[^']*'|\S+", line.partition("#")[0].partition(words[1])[2].partition(";")[0])
            prepare = getattr(module, "split", list)
            parser.parse_args(prepare([argument.strip("'") for argument in arguments]))


def test_every_python_block_is_python() -> None:
    for page in PAGES:
        for code in BLOCK.findall(page.read_text(encoding="utf-8")):
            if code[0] == "python":
                compile(code[1], str(page), "exec")


def test_the_file_format_page_reads_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = """
        process train.py | pid={pid}
          thread MainThread
            python main @ train.py:3
              operator aten::linear | time=5,7
                operator aten::addmm | time=11
        """
    profile = build(drawn.format(pid=100))
    write_profile(tmp_path / "out.leadline", profile)
    load, roll_up, merge = blocks("docs/file-format.md", "python")
    names: dict[str, object] = {}
    exec(load.replace('"out.leadline"', repr(str(tmp_path / "out.leadline"))), names)
    exclusive = profile.tree.exclusive("time").sum.copy()
    names["exclusive"] = exclusive
    exec(roll_up, names)
    assert isinstance(names["first_name"], str)
    assert names["first_name"]
    inclusive = names["inclusive"]
    assert isinstance(inclusive, np.ndarray)
    assert inclusive[0] == 23
    assert np.array_equal(inclusive, profile.tree.inclusive("time").sum)
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        write_profile(f"rank{rank}.leadline", build(drawn.format(pid=100 + rank)))
    exec(merge, {})
    assert open_profile("all.leadline").tree.root.inclusive("time").sum == 46
