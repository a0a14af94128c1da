"""The site of `make docs`: pages that are made from the code are those of the code, every page has its place, and every
link in what the site is built of leads to a page of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.analysis.rules import RULES
from leadline.capture.config import Options
from leadline.cli.subcommands import SUBCOMMANDS

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def reference(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/reference.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    done = reference("--site", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_pages_of_rules_are_those_of_the_code() -> None:
    done = reference("--check")
    assert done.returncode == 0, f"run `make reference`:\n{done.stdout}{done.stderr}"


def test_every_link_of_the_site_leads_to_a_page_of_it(site: Path) -> None:
    for page in site.rglob("*.md"):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target = link.partition("#")[0]
            if "://" not in link and target:
                path = (page.parent / target).resolve()
                assert path.is_relative_to(site) and path.exists(), f"{page.relative_to(site)}: {link}"


def test_every_page_has_a_place_in_the_site(site: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    placed = re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE)
    held = {str(page.relative_to(site)) for page in site.rglob("*.md") if page.parent.name != "rules"}
    assert sorted({*placed, "images/README.md"}) == sorted(held)
    assert len(placed) == len(set(placed))


def test_a_rule_s_page_shows_what_the_rule_says(site: Path) -> None:
    for rule in RULES:
        assert "## What it says" in (site / "rules" / f"{rule.name}.md").read_text(encoding="utf-8")


def test_every_subcommand_and_option_is_in_the_reference(site: Path) -> None:
    cli = (site / "cli.md").read_text(encoding="utf-8")
    assert all(f"\n## {one.name}\n" in cli for one in SUBCOMMANDS)
    assert "--trace-max-events" in cli
    options = (site / "options.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", options, re.MULTILINE) == list(Options.__annotations__)


def test_no_page_asks_another_server_for_anything(site: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings and "extra_javascript" not in settings
    for page in site.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "```mermaid" not in text and not re.search(r"!\[[^\]]*\]\(https?:", text), page
