"""Predictions and trials as pages of the house: the answer first, bars that are as long as what they say, no row lost."""

from __future__ import annotations

import json
import threading

import pytest
from tests.whatif.test_command import kineto

from leadline._view_server import ViewServer
from leadline.cli.files import open_profile
from leadline.cli.main import main
from leadline.cli.trial_page import trial_changes
from leadline.report.changes import Bar, Changes, Group, Row, changes_object
from leadline.report.html import render_changes
from leadline.report.view import View
from leadline.trials.model import Change, Equality, Trial
from leadline.trials.model import Row as Tried


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predicted")
    trace = folder / "trace.json"
    trace.write_text(json.dumps(kineto(4)))
    return trace


@pytest.fixture
def trial():
    """A step of 10 ms; one remedy takes 30 % of it, one changes nothing, one fails."""
    rows = [
        Tried("baseline", "baseline", "", 10e6, equality=Equality("baseline", "", 0.5)),
        Tried("faster=1", "faster", "faster by 30 %", 7e6, Change(-0.3, -0.35, -0.25, 5), Equality("equal", "", 0.5)),
        Tried("idle", "no difference", "no difference: at most 1 %", 10e6, Change(0.0, -0.01, 0.01, 5)),
        Tried("broken", "failed", "failed with exit code 1", reason="Traceback\nTypeError: no number"),
    ]
    return Trial("train.py --steps 5", rows, 30, 5, "leadline.step", 5, 0.01, ("The time was up.",), {"device": "CPU"})


def test_the_page_of_a_trial_says_what_gains_and_folds_what_does_not(trial, browse, tmp_path):
    page = tmp_path / "trial.html"
    page.write_text(render_changes(trial_changes(trial, "Tried and measured")))
    seen = browse("changes.mjs", page)
    assert seen["faults"] == []
    assert seen["sentence"] == "With faster=1 a step takes 7.00 ms instead of 10.0 ms"
    assert seen["program"] == "train.py --steps 5"
    assert seen["bars"] == ["10.0 ms", "7.00 ms (6.50 ms to 7.50 ms)"]
    before, after = seen["widths"]
    assert after / before == pytest.approx(0.7, abs=0.01)
    assert seen["folded"] == ["1 that gains nothing"]
    assert [row[0] for row in seen["rows"]] == ["baseline", "faster=1", "broken", "idle"]


def test_the_page_of_predictions_has_every_scenario_of_the_text_once(predicted, browse, tmp_path, capsys):
    page = tmp_path / "whatif.html"
    assert main(["whatif", str(predicted), "-o", str(page)]) == 0
    assert main(["whatif", str(predicted), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    seen = browse("changes.mjs", page)
    assert seen["faults"] == []
    assert sorted(row[0] for row in seen["rows"]) == sorted(one["title"] for one in said["scenarios"])
    assert any(label.endswith(", predicted") for label in seen["strips"]) or not seen["advice"]
    assert all(command.startswith("leadline whatif ") for command in seen["opened"])


def test_the_tab_says_the_same_as_the_command(predicted, browse, tmp_path, capsys):
    server = ViewServer(View([(str(predicted), open_profile(str(predicted)))]))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        tab = browse("changes.mjs", f"{server.address}#changes")
    finally:
        server.close()
        thread.join(10)
    page = tmp_path / "whatif.html"
    assert main(["whatif", str(predicted), "-o", str(page)]) == 0
    alone = browse("changes.mjs", page)
    assert tab["faults"] == []
    assert (tab["sentence"], tab["bars"], tab["rows"]) == (alone["sentence"], alone["bars"], alone["rows"])


def test_an_endless_step_and_foreign_text_are_drawn(browse, tmp_path):
    strange = "</script><b>&"
    row = Row(Bar(strange, float("inf"), 1.0, float("inf")), ("1x",), strange, (strange,))
    found = Changes(
        "What if",
        strange,
        "",
        "a step",
        strange,
        (),
        (Bar("now", 5.0, before=True),),
        (),
        ("gain",),
        (Group(strange, (row,)),),
    )
    assert changes_object(found)["groups"][0]["rows"][0]["bar"]["ns"] == 0.0
    page = tmp_path / "x.html"
    page.write_text(render_changes(found))
    seen = browse("changes.mjs", page)
    assert seen["faults"] == []
    assert seen["sentence"] == strange


def test_a_file_of_the_comparison_is_the_same_page(profiles, browse, tmp_path):
    _, before, after = profiles
    page = tmp_path / "diff.html"
    assert main(["diff", str(before), str(after), "-o", str(page)]) == 0
    seen = browse("changes.mjs", page)
    assert seen["faults"] == []
    assert seen["sentence"].startswith("A step takes ") and " instead of " in seen["sentence"]
    assert len(seen["bars"]) == 2 and max(seen["widths"]) > min(seen["widths"])
    assert "What changed" in seen["heads"]
