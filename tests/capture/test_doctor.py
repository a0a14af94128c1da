"""`leadline doctor` tries the real thing, and says what does not work and what to do."""

import importlib.util
import json
from types import SimpleNamespace

import pytest

from leadline.capture.errors import ProfileError
from leadline.cli import checks, doctor
from leadline.cli.checks import FAILED, LIMITED, OK, Finding, installation, interpreter, output, probe, pytorch, system
from leadline.cli.main import main

HAS_TORCH = importlib.util.find_spec("torch") is not None


def test_a_machine_where_all_works(place) -> None:
    result = place.leadline("doctor", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"], result.stderr) == (0, True, b""), result.stdout.decode()
    levels = {
        (section["title"], finding["name"]): finding["level"]
        for section in report["sections"]
        for finding in section["findings"]
    }
    assert levels["installation", "native"] == OK
    assert levels["installation", "autostart"] == OK
    assert levels["python", "frames"] == OK
    assert levels["output", "folder"] == OK
    assert levels["torch", "self-test" if HAS_TORCH else "version"] == (OK if HAS_TORCH else LIMITED)
    assert list(place.folder.iterdir()) == []


def test_the_text_names_every_section_and_a_small_file_size_limit(place) -> None:
    result = place.run("sh", "-c", f"ulimit -f 100000; {' '.join(command())}")
    lines = result.stdout.decode().splitlines()
    assert {"installation", "python", "torch", "output", "system"} <= set(lines)
    assert b"limited file size" in result.stdout
    assert (result.returncode, lines[-1]) == (0, "Everything that should work on this machine works.")


def without_frameworks(place, **given: str) -> dict[str, str]:
    """An environment whose frameworks fail at once, but for those that are given: importing real ones takes seconds."""
    for framework in ("jax", "torch"):
        place.write(f"{framework}/__init__.py", given.get(framework, "raise ImportError('not this time')"))
    return {"PYTHONPATH": str(place.folder)}


def test_a_folder_that_cannot_be_written(place) -> None:
    environment = without_frameworks(place)
    result = place.run("sh", "-c", f"cd /proc; {' '.join(command())}", env=environment)
    assert result.returncode == 1
    assert b"failed  folder" in result.stdout
    assert result.stdout.endswith(b"Something that should work on this machine does not.\n")


@pytest.mark.parametrize("version", ["2.3.0", "9.9"])
def test_a_torch_that_cannot_be_measured(place, version: str) -> None:
    text = f"__version__ = {version!r}\ndef ones(*a, **k): raise RuntimeError('no torch at all')\n"
    result = place.leadline("doctor", env=without_frameworks(place, torch=text))
    assert result.returncode == 1
    assert b"failed  self-test" in result.stdout


def test_a_torch_that_crashes(place) -> None:
    result = place.leadline("doctor", env=without_frameworks(place, torch="import os; os.abort()"))
    assert result.returncode == 1
    assert b"The self-test died of SIGABRT." in result.stdout


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert [finding.level for finding in pytorch.check()] == [LIMITED]


def test_no_native_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ProfileError("Python 3.99 has no native part.")

    monkeypatch.setattr("leadline.capture.native.load_native", missing)
    findings = installation.check()
    assert [(finding.name, finding.level) for finding in findings] == [("native", FAILED)]
    assert "pip install" in findings[0].advice


def test_no_autostart(monkeypatch: pytest.MonkeyPatch) -> None:
    """-S leaves out site-packages and with it leadline.pth."""
    import subprocess

    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **named: run([command[0], "-S", *command[1:]], **named))
    finding = installation.check()[-1]
    assert (finding.name, finding.level) == ("autostart", FAILED)
    assert "leadline.pth" in finding.text


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (
            {"native": {"python_frames": False, "python_frames_missing": "no layout.", "clock": "counter"}, "path": []},
            "frames",
        ),
        ({"native": {"python_frames": True, "clock": "counter"}, "path": ["probe", "innermost"]}, "frames"),
    ],
)
def test_frames_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, values: dict[str, object], name: str) -> None:
    monkeypatch.setattr(interpreter, "run_probe", lambda: probe.ProbeResult(values, ""))
    assert [finding.name for finding in interpreter.check() if finding.level == FAILED] == [name]


def test_a_system_call_as_the_clock_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "native": {"python_frames": True, "clock": "system call"},
        "path": ["probe", "known_path", "known_path.<locals>.<lambda>", "known_path.<locals>.innermost"],
    }
    monkeypatch.setattr(interpreter, "run_probe", lambda: probe.ProbeResult(values, ""))
    assert {finding.name: finding.level for finding in interpreter.check()}["clock"] == LIMITED


def test_a_check_that_fails_itself_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[Finding]:
        raise ZeroDivisionError("x")

    good = SimpleNamespace(TITLE="good", check=lambda: [Finding("thing", OK, "fine")])
    monkeypatch.setattr(doctor, "sections", lambda: [SimpleNamespace(TITLE="bad", check=broken), good])
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [section["findings"][0]["level"] for section in report["sections"]] == [FAILED, OK]


def test_every_section_can_be_listed() -> None:
    assert [section.TITLE for section in checks.sections()][:3] == ["installation", "python", "torch"]
    assert {finding.level for finding in system.check() + output.check()} <= {OK, LIMITED, FAILED}


def command() -> tuple[str, ...]:
    import sys

    return (sys.executable, "-m", "leadline.cli.main", "doctor")
