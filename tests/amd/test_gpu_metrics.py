"""Hardware counters of the (fake) AMD GPU, from `leadline run --gpu-metrics` to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.amd.fake_gpu import run_program
from tests.truth.invariants import contradictions

from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.schema import LossKind

GEMM = "gemm(float*)"
COUNTERS = " ".join(
    f"{kernel},{counter},{value}"
    for kernel, values in {
        "_Z4gemmPf": {
            "OccupancyPercent": 25,
            "FETCH_SIZE": 6,
            "WRITE_SIZE": 2,
            "MfmaUtil": 40,
            "SQ_INSTS_VALU": 700,
            "SQ_INSTS_SALU": 200,
            "SQ_INSTS_SMEM": 60,
            "SQ_INSTS_LDS": 40,
        },
        "relu": {"OccupancyPercent": 80, "FETCH_SIZE": 10, "SQ_INSTS_VALU": 100},
    }.items()
    for counter, value in values.items()
)


def run(folder: Path, fakes: Path, *options: str, **environment: str) -> Profile:
    output = folder / "out.leadline"
    environment = {"STEPS": "60", "PAUSE": "1", "FAKE_COUNTERS": COUNTERS, **environment}
    asked = options or ("--gpu-metrics", "occupancy,dram,tensor,issue")
    status, said = run_program(output, fakes, *asked, "--budget", "100%", **environment)
    assert status == 0, said
    return open_profile(output)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Profile:
    return run(tmp_path_factory.mktemp("counted"), fakes)


def of_kernel(profile: Profile, name: str) -> dict[str, int]:
    (node,) = (node for node in profile.tree.find(kind="kernel") if node.name == name)
    metrics = ("counted_time", "occupied_time", "dram_bytes", "tensor_time", "warp_instructions")
    return {metric: node.exclusive(metric).sum for metric in metrics}


def unavailable(profile: Profile) -> str:
    return " ".join(one.detail for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE)


def check_gemm(profile: Profile) -> int:
    """Launches that were counted. The SDK's clock is compared with ours now and then, so times meet within that."""
    gemm = of_kernel(profile, GEMM)
    launches = round(gemm["counted_time"] / 50_000)
    assert launches > 0 and gemm["counted_time"] == pytest.approx(launches * 50_000, rel=0.02)
    assert gemm["occupied_time"] == pytest.approx(launches * 12_500, rel=0.02)
    assert gemm["tensor_time"] == pytest.approx(launches * 20_000, rel=0.02)
    assert gemm["dram_bytes"] == pytest.approx(launches * 8 * 1024, rel=0.02)
    assert gemm["warp_instructions"] == pytest.approx(launches * 1000, rel=0.02)
    return launches


def test_every_counted_launch_has_its_own_values(profile: Profile) -> None:
    gemm, relu = check_gemm(profile), of_kernel(profile, "relu")
    launches = round(relu["counted_time"] / 10_000)
    assert launches > 0 and relu["dram_bytes"] == pytest.approx(launches * 10 * 1024, rel=0.05)
    assert relu["tensor_time"] < launches * 100  # none, but for the clocks
    told = profile.meta["processes"][0]["available"]["amd"]["details"]["counters"]
    assert told["metrics"] == ["occupancy", "dram", "tensor", "issue"] and told["message"] == ""
    assert told["readings"] == launches + gemm
    assert told["no_record"] == told["dropped"] == 0 and told["chips"] == "gfx942"
    assert unavailable(profile) == "" and contradictions(profile) == []


def test_releases_before_1_0_have_another_layout(tmp_path: Path, fakes: Path) -> None:
    check_gemm(run(tmp_path, fakes, FAKE_SDK="600"))


def test_the_report_shows_them(profile: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from leadline.profiles import write_profile

    file = str(tmp_path / "held.leadline")
    write_profile(file, profile)
    assert main(["report", file, "--format", "json"]) == 0
    assert "dram" in json.dumps(json.loads(capsys.readouterr().out)).lower()


def test_what_a_device_does_not_count_is_said_and_the_rest_is_counted(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, "--gpu-metrics", "occupancy,l2", STEPS="6")
    assert "does not count l2" in unavailable(profile)
    assert sum(profile.tree.exclusive("gpu_time").count) >= 12


@pytest.mark.parametrize(("status", "words"), [("40", "refuses to count dispatches"), ("15", "another process's")])
def test_what_is_refused_is_said_and_all_else_is_measured(tmp_path: Path, fakes: Path, status: str, words: str) -> None:
    profile = run(tmp_path, fakes, FAKE_COUNTING=status, STEPS="3")
    assert words in unavailable(profile)
    assert of_kernel(profile, GEMM)["counted_time"] == 0
    assert sum(profile.tree.exclusive("gpu_time").count) >= 6
