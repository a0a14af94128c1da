"""Every file of every format version opens and shows the tree that it showed when it was made."""

import os
from pathlib import Path

import pytest
from tests.compat.make_v1 import shown

from leadline.cli.main import main as run_command
from leadline.convert import EXPORTERS, Exporter, ExportError, Request, export, write
from leadline.convert.sinks import MemorySink
from leadline.profiles import open_profile
from leadline.schema import FORMAT_VERSION, EventKind, LossKind
from leadline.trace.profile_window import read_profile
from leadline.trace.tables import Kind

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("v*.leadline"))


def test_there_is_a_file_of_every_version() -> None:
    versions = {int(path.name.partition("-")[0][1:]) for path in FILES}
    assert versions == set(range(1, FORMAT_VERSION + 1))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_shows_its_tree(path: Path) -> None:
    assert shown(open_profile(path)) == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_version_1_keeps_processes_regions_phases_and_losses() -> None:
    profile = open_profile(FOLDER / "v1-torch.leadline")
    assert len(profile.processes) == 3
    assert [process.complete for process in profile.processes].count(False) == 1
    assert [loss.kind for loss in profile.losses if loss.kind == LossKind.PROCESS_INCOMPLETE] == [
        LossKind.PROCESS_INCOMPLETE
    ]
    assert profile.tree.find(kind="region", name="activation")
    assert profile.tree.find(kind="phase", name="backward")
    assert profile.tree.find(kind="module", pattern=r"\b0\.inner$")
    assert profile.tree.root.inclusive("alloc_bytes").sum > 0
    operators = profile.events["kind"] == EventKind.OPERATOR
    assert set(profile.events["step"][operators].tolist()) >= {1, 2}


def test_version_1_keeps_devices_and_their_events() -> None:
    profile = open_profile(FOLDER / "v1-drawn.leadline")
    (kernel,) = profile.tree.find(kind="kernel")
    stat = kernel.exclusive("gpu_time", device=0, stream=7)
    assert (stat.count, stat.sum, stat.min, stat.max) == (2, 210, 100, 110)
    assert [device.name for device in profile.devices] == ["GPU 0", "GPU 1"]
    assert profile.events["correlation"].tolist() == [0, 9, 9]
    assert profile.losses[0].detail == "The buffer was full."


def test_version_2_keeps_running_and_waiting_times_and_spans_of_modules() -> None:
    profile = open_profile(FOLDER / "v2-drawn.leadline")
    assert profile.tree.root.inclusive("running_time").sum == 70
    assert profile.tree.root.inclusive("wait_time").sum == 15
    assert [str(EventKind(kind)) for kind in profile.events["kind"].tolist()] == ["module", "operator"]


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda one: one.name)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_is_exported(path: Path, exporter: Exporter) -> None:
    profile, sink = open_profile(path), MemorySink()
    with sink:
        write(profile, exporter, Request(exporter.holds), sink)
    if exporter.folder:
        assert all(len(content) > 10 for content in sink.members.values()) and "metadata" in " ".join(sink.members)
        with pytest.raises(ExportError, match="folder"):
            export(profile, exporter)
    else:
        assert len(sink.data) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_window_of_an_old_file_keeps_what_it_had(path: Path) -> None:
    """Every event of the file is in one of its traces, at its own node, and `leadline whatif` answers."""
    profile = open_profile(path)
    traces = read_profile(profile)
    added = (Kind.MODULE, Kind.PHASE)  # spans that a file does not hold are made
    recorded = sorted(kind for kind in profile.events["kind"].tolist() if kind not in added)
    found = sorted(kind for trace in traces for kind in trace.events["kind"].tolist() if kind not in added)
    assert found == recorded
    for trace in traces:
        operators = trace.of_kind(Kind.OPERATOR)
        for row in operators.tolist():
            assert profile.tree.node(int(trace.events["node"][row])).name == trace.name(row)
    assert run_command(["whatif", str(path), "--format", "json", "-o", os.devnull]) in (0, 2)


def test_the_real_old_file_answers_what_if(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["whatif", str(FOLDER / "v1-torch.leadline"), "--replay"]) == 0
    assert "replay" in capsys.readouterr().out
