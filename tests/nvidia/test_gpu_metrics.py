"""Hardware counters of the (fake) GPU, from `leadline run --gpu-metrics` to the report and the finding."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nvidia.test_instructions import CUBIN, HERE, KERNEL, times
from tests.truth.invariants import contradictions

from leadline.analysis.analyze import analyze
from leadline.analysis.hardware import by_kernel
from leadline.cli.main import main
from leadline.profiles import Profile, open_profile, write_profile
from leadline.schema import LossKind

LEADLINE = (sys.executable, "-m", "leadline.cli.main")


def run(tmp_path: Path, fakes: Path, *options: str, **environment: str) -> Profile:
    output = tmp_path / "out.leadline"
    done = subprocess.run(
        [*LEADLINE, "run", "-q", "-o", str(output), *options, str(HERE / "sampled_program.py")],
        env={
            **os.environ,
            "FAKES": str(fakes),
            "CUBIN": str(CUBIN),
            "KERNEL": KERNEL,
            "RATES": f"{KERNEL},50,20,30,900",
        }
        | {"LEADLINE_COUNTER_INTERVAL": "20", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return open_profile(output)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Profile:
    folder = tmp_path_factory.mktemp("counted")
    return run(folder, fakes, "--gpu-metrics", "dram,occupancy,tensor", "--budget", "100%", STEPS="80")


def test_shares_of_the_device_stand_at_the_kernel(profile: Profile) -> None:
    (kernel,) = by_kernel(profile.tree)
    assert kernel.name.startswith("rmsnorm")
    assert 0 < kernel.counted_ns <= kernel.gpu_ns
    assert kernel.occupancy == pytest.approx(0.5, abs=0.01)
    assert kernel.tensor == pytest.approx(0.2, abs=0.02)
    assert kernel.dram == pytest.approx(0.3, abs=0.02)
    assert kernel.dram_bytes_s == pytest.approx(900e9, rel=0.02)
    assert kernel.issue is kernel.l2 is kernel.instructions_s is None
    assert contradictions(profile) == []
    told = profile.meta["available"]["nvidia"]["details"]["counters"]
    assert told["metrics"] == ["dram", "occupancy", "tensor"] and told["chips"] == "GH100"
    assert told["readings"] > told["no_record"] > 0 and not told["aligned"]


def test_they_add_up_over_the_region_that_launched_it(profile: Profile) -> None:
    (region,) = profile.tree.find(kind="region", name="layer")
    tree = profile.tree
    counted, taken = (tree.inclusive(name).sum[region.row] for name in ("counted_time", "occupied_time"))
    assert taken / counted == pytest.approx(0.5, abs=0.01)


def test_kernel_times_are_those_of_a_run_without(tmp_path: Path, fakes: Path, profile: Profile) -> None:
    assert times(run(tmp_path, fakes, STEPS="80")) == times(profile)


def test_the_report_shows_them(profile: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "held.leadline")
    write_profile(file, profile)
    assert main(["report", file]) == 0
    text = capsys.readouterr().out
    heads = text.split("Hardware counters")[1].split("kernel", 1)[1].splitlines()[0].split()
    assert heads == ["time", "counted", "occupancy", "SMs", "matrix", "memory", "GB/s"]  # whole, also in 80 columns
    assert re.search(r"\b(49|50)(\.\d)? %", text), text  # windows are cut by the clock
    assert main(["report", file, "--format", "markdown"]) == 0
    assert "matrix units" in capsys.readouterr().out
    assert main(["report", file, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["gpu"]["counters"]
    assert row["occupancy"] == pytest.approx(0.5, abs=0.01) and row["issue"] is None


def test_a_kernel_far_from_both_roofs_is_named(profile: Profile) -> None:
    (found,) = analyze(profile, ["roofline"])
    assert "30 % of the device memory's rate and 20 % of its matrix units' rate" in found.title
    assert any("900 GB/s" in line for line in found.evidence)
    assert found.lines[0].file.endswith("sampled_program.py")


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Profile:
    folder = tmp_path_factory.mktemp("replayed")
    asked = ("--gpu-metrics", "all", "--replay", "--budget", "100%")
    return run(folder, fakes, *asked, STEPS="60", MEMORY=f"{KERNEL},4,3,1,24")


def test_kernels_are_run_again_until_everything_is_counted(replayed: Profile) -> None:
    (kernel,) = by_kernel(replayed.tree)
    assert kernel.occupancy == pytest.approx(0.5) and kernel.tensor == pytest.approx(0.2)
    assert kernel.conflicts == pytest.approx(0.75) and kernel.sectors == pytest.approx(24)
    assert None not in vars(kernel).values()
    told = replayed.meta["available"]["nvidia"]["details"]["replay"]
    assert told["passes"] > 1 and told["launches"] > 0 and told["message"] == ""
    assert replayed.meta["asked"]["replay"] is True
    counted = sum(replayed.tree.exclusive("counted_time").count)
    assert counted == told["launches"]  # each is told once
    assert contradictions(replayed) == []


def test_replaying_leaves_the_times_of_kernels_as_they_are(replayed: Profile, tmp_path: Path, fakes: Path) -> None:
    assert times(run(tmp_path, fakes, STEPS="60")) == times(replayed)


def test_what_was_counted_is_shown_and_names_its_faults(
    replayed: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    write_profile(str(tmp_path / "held.leadline"), replayed)
    assert main(["report", str(tmp_path / "held.leadline")]) == 0
    text = capsys.readouterr().out
    assert "replay" in text and "24.0" in text and "75 %" in text
    titles = [one.title for one in analyze(replayed, ["bank_conflicts", "uncoalesced"])]
    assert any("75 % of shared memory's passes" in title for title in titles)
    assert any("touches 24 pieces of 32 bytes" in title for title in titles)


@pytest.mark.parametrize("code", ["35", "26"])
def test_a_refused_replay_is_said_and_all_else_is_measured(tmp_path: Path, fakes: Path, code: str) -> None:
    profile = run(tmp_path, fakes, "--gpu-metrics", "all", "--replay", "--budget", "100%", REFUSE=code, STEPS="20")
    assert by_kernel(profile.tree) == []
    (loss,) = [one for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE]
    assert loss.detail.startswith("Kernels are not replayed for their counters because")


@pytest.mark.parametrize(("code", "words"), [("35", "ERR_NVGPUCTRPERM"), ("26", "another profiler"), ("43", "(MIG)")])
def test_what_is_refused_is_said_and_all_else_is_measured(tmp_path: Path, fakes: Path, code: str, words: str) -> None:
    profile = run(tmp_path, fakes, "--gpu-metrics", "all", "--budget", "100%", REFUSE=code, STEPS="20")
    assert by_kernel(profile.tree) == []
    assert times(profile)["rmsnorm(__half const*, __half const*, __half*, int)"][0] == 20
    (loss,) = [one for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE]
    assert words in loss.detail and loss.detail.startswith("GPU metrics are not counted")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--gpu-metrics", "flops"], "there are occupancy"),
        (["--gpu-metrics", "all,flops"], "no GPU metric 'flops'"),
        (["--gpu-metrics", ""], "--gpu-metrics needs names: occupancy"),
        (["--gpu-metrics", " , "], "--gpu-metrics needs names"),
        (["--gpu-metrics", "global"], "add --replay"),
        (["--replay"], "name them with --gpu-metrics"),
        (["--instructions", "--gpu-metrics", "all"], "two runs"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(options: list[str], words: str) -> None:
    done = subprocess.run([*LEADLINE, "run", *options, "x.py"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.strip().splitlines()) == 1
