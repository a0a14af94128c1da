"""Every file of every format version opens and shows the tree that it showed when it was made."""

from pathlib import Path

import pytest
from tests.compat.make_v1 import shown

from leadline.profiles import open_profile
from leadline.schema import FORMAT_VERSION, EventKind, LossKind

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
