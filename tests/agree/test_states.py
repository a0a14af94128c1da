"""Problem, none found, could not look: text, Markdown, JSON, HTML, exit code, mcp and a saved file say the same one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.analysis.test_findings import training

from leadline.agent.answers import findings as mcp_findings
from leadline.analysis.findings import EXIT_CODES, State
from leadline.cli.main import main
from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.profiles.writer import write_profile


def _no_steps() -> Profile:
    return build("process a.py | pid=5\n  thread main | tid=5 wall_ns=9\n    python main @ /home/ada/a.py:3")


STATES = {
    State.PROBLEM: (lambda: training(loading_ms=6), 1, "warning", ""),
    State.NONE_FOUND: (training, 0, "no problem found", ""),
    State.COULD_NOT_LOOK: (_no_steps, 3, "could not look", "no training step or repeated call was found"),
}


@pytest.mark.parametrize("state", STATES)
def test_every_encoding_says_the_same_state(state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make: Callable[[], Profile]
    make, code, words, why = STATES[state]
    file = str(tmp_path / "run.leadline")
    write_profile(file, make())
    assert EXIT_CODES[state] == code
    for form in ("text", "markdown", "html"):
        assert main(["analyze", file, "--format", form, "--exit-code"]) == code
        said = capsys.readouterr().out
        assert words in said
        assert why in said.replace("\n", " ")
        others = {"no problem found", "could not look"} - {words}
        assert not [other for other in others if other in said]
    assert main(["analyze", file, "--format", "json"]) == 0  # nobody asked for the code
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["unlooked"]) == (state.value, why)
    assert json.loads(mcp_findings(file))["state"] == state.value
    assert main(["analyze", file, "--save"]) == 0
    capsys.readouterr()
    assert main(["report", file, "--format", "json"]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert saved["findings"]["state"] == state.value
    assert main(["report", file]) == 0
    assert words in capsys.readouterr().out
