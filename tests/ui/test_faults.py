"""What is missing or broken is a fallback or a sentence, never a blank page."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import threading

import pytest

from leadline._view_server import ViewServer
from leadline.cli import main as cli
from leadline.profiles import open_profile
from leadline.profiles.build import build
from leadline.report import ReportOptions, build_report
from leadline.report.embedded import packed
from leadline.report.html import render_html
from leadline.report.view import View

PROFILE = (
    "python main @ /u/t.py:2\n  operator aten::mm | time=50 call_time=50\n  operator aten::relu | time=7 call_time=7"
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory, browse):
    folder = tmp_path_factory.mktemp("faults")
    profile = build(PROFILE)
    page = render_html(profile, build_report(profile, ReportOptions(frames=False), "run.leadline"))
    (folder / "page.html").write_text(page)
    broken = folder / "broken"
    broken.mkdir()
    data = packed(profile.tables, profile.meta)
    pages = {
        "cut.html": data[: len(data) // 2],
        "foreign.html": b"PK\x05\x06" + bytes(18),
        "changed.html": data.replace(b"nodes.parent", b"nodes.parenT"),
        "flipped.html": data[:3000] + bytes([data[3000] ^ 255]) + data[3001:],
        "empty.html": b"",
    }
    for name, content in pages.items():
        held = 'id="profile-0">' + base64.b64encode(content).decode()
        (broken / name).write_text(re.sub(r'id="profile-0">[^<]*', held, page))
    return browse("faults.mjs", folder / "page.html", broken)


def test_boxes_are_drawn_with_webgl_without_it_and_when_it_is_lost(seen):
    drawn = seen["drawn"]
    assert min(drawn["usual"], drawn["afterLoss"], drawn["without"]) >= 3
    assert drawn["errors"] == []


def test_a_broken_profile_is_a_sentence(seen):
    for name, text in seen["shown"].items():
        assert text.startswith("This profile cannot be shown"), name
        assert "\n" in text
        assert "This is a fault of the page" not in text, text
    assert "is cut off" in seen["shown"]["cut.html"]


def test_a_server_that_is_slow_or_lost(profiles, browse):
    _, before, _ = profiles
    server = ViewServer(View([(str(before), open_profile(before))]))
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        seen = browse("server.mjs", server.address)
    finally:
        server.close()
    lost = "The server of this page has ended; run `leadline view` again."
    assert "Reading the profile" in seen["waiting"]
    assert "Reading the profile" not in seen["answered"]
    assert "One step\nadds up to" in seen["answered"]
    assert lost in seen["lost"]
    assert lost in seen["banner"]
    assert "This file holds no summary" in seen["withoutPython"]
    assert seen["failed"].startswith("This profile cannot be shown")
    assert lost in seen["failed"]


class NoPython(View):
    """As in an editor without an interpreter."""

    def answer(self, path, query):
        if path.startswith(("report/", "findings/")):
            return "application/json", b"null"
        return super().answer(path, query)


def tables_without_python(path, browse):
    server = ViewServer(NoPython([(str(path), open_profile(path))]))
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        return browse("stored.mjs", server.address)
    finally:
        server.close()


def test_without_python_the_stored_summary_is_shown(profiles, tmp_path, browse, capsys):
    path = tmp_path / "kept.leadline"
    path.write_bytes(profiles[1].read_bytes())
    assert cli.main(["analyze", "--save", str(path)]) == 0
    capsys.readouterr()
    seen = tables_without_python(path, browse)
    verdict = build_report(open_profile(path), ReportOptions(verdict=True)).verdict
    assert verdict.sentence[1:].split("   ")[0] in seen["overview"]
    assert "aten::addmm" in seen["operators"]
    assert seen["errors"] == []


@pytest.mark.parametrize(
    "saved",
    [
        {"verdict": {"sentence": 7}, "start": {"bars": "x"}},
        {"meta": {"frameworks": 3, "program": ["x"]}, "totals": [], "cost": {"percent": "much"}},
        {"tables": {"operators": [None, {"name": {"a": 1}}], "lines": 5}, "time_split": [None]},
    ],
)
def test_a_stored_summary_that_makes_no_sense_costs_what_it_would_have_said(saved, tmp_path, browse):
    profile = build(PROFILE)
    profile.meta["report"] = {"format": {"name": "leadline-report", "version": 1}, **saved}
    path = tmp_path / "odd.leadline"
    path.write_bytes(packed(profile.tables, {**profile.meta, "drawn": "a test"}))
    seen = tables_without_python(path, browse)
    assert "aten::mm" in seen["flame"], "other pages are shown"


def test_a_tree_of_five_thousand_levels_opens(tmp_path, browse):
    lines = [f"{'  ' * level}python f{level} @ /u/t.py:{level + 1}" for level in range(5000)]
    (tmp_path / "deep.txt").write_text("\n".join([*lines, "  " * 5000 + "operator aten::mm | time=5 call_time=5"]))
    make = (
        "import sys; from leadline.profiles.build import build; from leadline.report import *\n"
        "from leadline.report.html import render_html\n"
        "profile = build(open('deep.txt').read())\n"
        "open('deep.html', 'w').write(render_html(profile, build_report(profile, ReportOptions(frames=False), 'x')))"
    )
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True, timeout=100)
    (tmp_path / "none").mkdir()
    drawn = browse("faults.mjs", tmp_path / "deep.html", tmp_path / "none")["drawn"]
    assert drawn["errors"] == []
    assert drawn["usual"] >= 1
