"""The HTML page: what is in the file, and what a user sees of it in a real browser."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from drawings import HOSTILE, hostile, training

from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.report.html import embedded_json, render_html

JS = Path(__file__).parents[1] / "js"
UI = Path(__file__).parents[2] / "ui"


def page_of(profile):
    return render_html(profile, build_report(profile, ReportOptions(top=200, whole_tables=True), "run.leadline"))


def used_in_browser(profile, tmp_path):
    """What page.mjs saw of the page in Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None or not (JS / "node_modules").exists():
        pytest.skip("Opening the page needs the program chromium and `npm ci` in tests/js.")
    path = tmp_path / "report.html"
    path.write_text(page_of(profile), encoding="utf-8")
    done = subprocess.run(
        ["node", "page.mjs", str(path)], cwd=JS, env={**os.environ, "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return used_in_browser(training(), tmp_path_factory.mktemp("page"))


class Elements(html.parser.HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("make", [training, hostile])
def test_the_file_holds_everything_and_points_nowhere(make):
    text = page_of(make())
    parser = Elements()
    parser.feed(text)
    assert [tag for tag, _ in parser.tags].count("script") == 3
    assert not [
        name for _, attributes in parser.tags for name in attributes if name in ("src", "srcset", "action", "onload")
    ]
    assert [attributes["href"] for _, attributes in parser.tags if "href" in attributes] == ["data:,"]


def test_the_policy_allows_exactly_the_script_and_style_of_the_file():
    text = page_of(hostile())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    for element in ("style", "script"):
        content = text.split(f"<{element}>")[1].split(f"</{element}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_embedded_json_cannot_end_its_element_and_reads_back():
    data = {name: [name] for name in [*HOSTILE, "<!--", "]]>", "\u2028"]}
    text = embedded_json(data)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == data


def test_no_script_writes_html():
    sources = [path for folder in ("model", "views", "web") for path in (UI / folder).rglob("*.ts*")]
    assert len(sources) > 20
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "dangerouslySetInnerHTML",
        ):
            assert word not in text, f"{path.name} uses {word}"


def test_the_size_is_bounded():
    builder = ProfileBuilder()
    node = builder.node_of_thread(builder.thread(builder.process("p"), "t"))
    for i in range(60_000):
        if i % 100 == 0:
            parent = builder.child(node, builder.frame("python", f"function_{i}", file=f"/a/{i}.py", line=i))
        operator = builder.child(parent, builder.frame("operator", f"aten::op_{i}"))
        builder.add(operator, "time", 1000)
        builder.add(operator, "call_time", 1000)
    assert len(page_of(builder.profile())) < 4_000_000


def test_nothing_went_wrong_and_nothing_was_loaded(seen):
    assert seen["seen"]["errors"] == []
    assert seen["seen"]["dialogs"] == []
    assert len(seen["seen"]["requests"]) == 1
    assert not seen["wide"]
    assert not seen["wideOnPhone"]


def test_overview(seen):
    overview = seen["overview"]
    assert seen["title"] == "train.py --steps 2 - Leadline"
    assert overview["page"] == "page-overview"
    assert overview["places"][:2] == ["model/gpt.py:12 Block.forward"] * 2
    assert overview["steps"][0].split("\n")[0].startswith("model.h.* · 2 modules")


def test_figures_of_the_whole_run_are_on_the_page_of_trust(seen):
    run = seen["run"]
    assert run["tiles"][0].split("\n")[:2] == ["Wall time", "12.0 ms"]
    assert run["tiles"][-1].split("\n") == ["Not measured", "13", "2 kinds, see above"]
    assert run["split"] == ["operators 60 %\nPython ~20 %\ndata loading 10 %\nidle ~10 %"]
    assert run["commands"][0] == "leadline report run.leadline --focus 'model/gpt\\.py:12$'"


def test_flame_graph(seen):
    assert seen["flame"]["page"] == "page-flame"
    assert seen["flame"]["hash"] == "#flame"
    assert seen["flame"]["toggles"] == ["Hide libraries", "Fold layers"]
    assert seen["flame"]["drawn"]["colours"] > 5
    assert seen["flame"]["start"].startswith("5.00 ms time")
    assert "aten::addmm\n48 %" in seen["flame"]["start"]
    assert seen["clicked"].startswith("python\n<module> · train.py:88")
    assert "train.py:88\ncopy" in seen["clicked"]
    assert "time\t5.00 ms\t100 %" in seen["clicked"]
    assert seen["below"].startswith("python\nmain · train.py:70")


def test_zoom_and_back(seen):
    assert seen["zoomed"] == ["all", "train.py", "MainThread", "<module> · train.py:88", "main · train.py:70"]
    assert seen["unzoomed"]


def test_toggles_and_bottom_up(seen):
    assert seen["unfolded"]["toggles"] == []
    assert seen["bottomUp"].startswith("operator\naten::addmm")
    assert "Called from\naten::linear\n2.40 ms" in seen["bottomUp"]


def test_search(seen):
    assert seen["searched"] == ["84 % in 2 places"]
    assert seen["nextFound"].startswith("operator\naten::linear")
    assert seen["nothingFound"] == ["nothing found"]


def test_metric_and_theme(seen):
    assert seen["nextMetric"] == "alloc_bytes"
    assert seen["dark"] == "dark"


def test_operators_sort_filter_and_lead_to_the_flame_graph(seen):
    names = seen["operators"]["names"]
    assert names[0] == "aten::addmm"
    assert seen["operators"]["first"].split("\t")[:2] == ["aten::addmm", "4"]
    assert seen["byCalls"][0] == "aten::add_"
    assert seen["byName"] == sorted(names, key=str.lower)
    assert seen["filtered"] == ["aten::linear"]
    assert seen["afterOperator"] == {"page": "page-flame", "search": "aten::linear"}


def test_modules_and_memory(seen):
    assert [row.split("\t")[0].strip() for row in seen["modules"]] == ["model", "model.h.* 2 modules"]
    assert "Peak 8.00 KiB on CPU" in seen["memory"]["text"]
    assert seen["fromMemory"]["page"] == "page-flame"
    assert seen["fromMemory"]["metric"] == "peak_live_bytes"
    assert seen["fromMemory"]["crumbs"][-1] == "aten::linear"


def test_capture_and_help(seen):
    assert "12 ×\nfree_unknown\nmemory freed that was allocated before measuring began" in seen["capture"]
    assert "CUPTI is held by nsys." in seen["capture"]
    assert "about 2.2 %" in seen["capture"]
    assert "bottom-up or top-down" in seen["help"]


def test_a_hot_path_leads_to_its_frame(seen):
    assert seen["fromPath"]["page"] == "page-flame"
    assert seen["fromPath"]["details"].startswith("operator\naten::linear")


def test_hostile_names_are_shown_and_do_nothing(tmp_path):
    seen = used_in_browser(hostile(), tmp_path)
    assert seen["seen"]["dialogs"] == []
    assert seen["seen"]["errors"] == []
    assert len(seen["seen"]["requests"]) == 1
    assert seen["made"] == {"scripts": 3, "images": 0, "links": 0, "frames": 0, "polluted": 0}
    assert "</script><script>alert(1)</script>" in seen["operators"]["names"]
    assert "a;b c\\u{9}d\\u{a}e" in seen["operators"]["names"]
    assert not seen["wide"]
    assert not seen["wideOnPhone"]


@pytest.mark.parametrize("drawing", ["process idle.py", "operator a | alloc_bytes=5", "operator a | call_time=0"])
def test_a_page_with_almost_nothing_to_show(drawing, tmp_path):
    seen = used_in_browser(build(drawing), tmp_path)
    assert seen["seen"]["errors"] == []
    assert seen["flame"]["page"] == "page-flame"


def test_a_gigantic_name_is_cut_where_people_read(tmp_path):
    name = "f" * 200_000
    drawing = f"python {name} @ /u/t.py:2\n  operator aten::mm | time=5 call_time=5"
    seen = used_in_browser(build(drawing), tmp_path)
    assert seen["seen"]["errors"] == []
    assert seen["overview"]["places"][0].endswith("f…")
    assert max(len(text) for text in [*seen["overview"]["places"], seen["clicked"], seen["below"]]) < 2000
    assert not seen["wide"]
    assert not seen["wideOnPhone"]
