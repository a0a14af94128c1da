"""Samples of instructions of the (fake) AMD GPU, from `leadline run --instructions` to the report and the findings."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.amd.fake_gpu import run_program
from tests.truth.invariants import contradictions

from leadline.analysis.analyze import analyze
from leadline.cli.main import main
from leadline.profiles import Profile, open_profile
from leadline.profiles.codetables import stored_code
from leadline.profiles.tree import json_object
from leadline.schema import LossKind, stall_group

GEMM, STEPS = "_Z4gemmPf", 60
ISSUED = 15
SAMPLES = f"{GEMM},64,3,8 {GEMM},72,2,2 {GEMM},80,{ISSUED},2 relu,16,9,1 relu,24,11,1"
"""Reasons by rocprofiler-sdk's numbers: waitcnt, alu_dependency, sleep_wait, and one that it does not name."""


def run(folder: Path, fakes: Path, *options: str, **environment: str) -> Profile:
    output = folder / "out.leadline"
    environment = {"STEPS": str(STEPS), "PAUSE": "1", "FAKE_SAMPLES": SAMPLES, **environment}
    status, said = run_program(output, fakes, *options, **environment)
    assert status == 0, said
    return open_profile(output)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory, fakes: Path) -> Profile:
    return run(tmp_path_factory.mktemp("sampled"), fakes, "--instructions", "--budget", "100%")


def counts(profile: Profile) -> Counter[tuple[str, int, str]]:
    """Samples by kernel, offset and reason."""
    tree = profile.tree
    samples = tree.exclusive("instruction_samples").sum
    found: Counter[tuple[str, int, str]] = Counter()
    for node in tree.find(kind="instruction"):
        detail = json_object(tree.text("detail", int(tree.frame_of[node.row])))
        address = int(tree.frames["address"][int(tree.frame_of[node.row])])
        found[str(detail["function"]), address, str(detail.get("stall", ""))] += int(samples[node.row])
    return found


def test_every_sample_stands_at_its_instruction_with_its_reason_below_its_kernel(profile: Profile) -> None:
    found = counts(profile)
    assert set(found) == {
        (GEMM, 64, "waitcnt"), (GEMM, 72, "alu_dependency"), (GEMM, 80, ""), ("relu", 16, "sleep_wait"),
        ("relu", 24, "reason 11"),
    }  # fmt: skip
    assert found[GEMM, 64, "waitcnt"] == 4 * found[GEMM, 72, "alu_dependency"] == 4 * found[GEMM, 80, ""]
    told = profile.meta["available"]["amd"]["details"]["instructions"]
    assert told["mode"] == "stochastic" and told["message"] == ""
    assert told["by_launch"] == told["samples"] == sum(found.values()) > 0 == told["unattributed"]
    assert contradictions(profile) == []


def test_samples_in_which_nothing_was_issued_are_known(profile: Profile) -> None:
    tree = profile.tree
    latency, samples = (int(tree.exclusive(name).sum.sum()) for name in ("latency_samples", "instruction_samples"))
    found = counts(profile)
    of_relu = sum(count for (name, _, _), count in found.items() if name == "relu")
    assert latency == found[GEMM, 64, "waitcnt"] * 6 // 8 + found[GEMM, 72, "alu_dependency"] + of_relu
    assert latency < samples


def test_the_code_is_kept_and_reasons_are_grouped(profile: Profile) -> None:
    assert stall_group("waitcnt") == "memory" and stall_group("reason 11") == "other"
    assert profile.meta["available"]["amd"]["details"]["instructions"]["code_bytes"] > 0
    assert dict(stored_code(profile.tables)) == {}  # which no reader knows, so it is not kept


def test_kernel_times_are_those_of_a_run_without(tmp_path: Path, fakes: Path, profile: Profile) -> None:
    def times(one: Profile) -> dict[str, tuple[int, int]]:
        gpu = one.tree.exclusive("gpu_time")
        found = one.tree.find(kind="kernel")
        return {node.name: (int(gpu.count[node.row]), int(gpu.sum[node.row])) for node in found}

    assert times(run(tmp_path, fakes)) == times(profile)


def test_the_report_and_the_rule_speak_amds_words(
    profile: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from leadline.profiles import write_profile

    first, *_ = analyze(profile, ["stall"])
    assert first.title.startswith("gemm") and "it waits for memory at an s_waitcnt" in first.title
    file = str(tmp_path / "held.leadline")
    write_profile(file, profile)
    assert main(["report", file, "--source", "--format", "json"]) == 0
    assert "waitcnt" in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["report", file, "--source"]) == 0
    text = capsys.readouterr().out
    assert "no other wavefront was issued either" in text and "warp" not in text


def test_traps_tell_no_reason(tmp_path: Path, fakes: Path) -> None:
    profile = run(tmp_path, fakes, "--instructions", "--budget", "100%", FAKE_SAMPLING="host-trap")
    assert {reason for _, _, reason in counts(profile)} == {""}
    assert profile.meta["available"]["amd"]["details"]["instructions"]["mode"] == "host-trap"


@pytest.mark.parametrize(
    ("status", "words"),
    [("17", "ROCPROFILER_PC_SAMPLING_BETA_ENABLED"), ("28", "too old"), ("40", "`render`"), ("37", "another process")],
)
def test_what_is_refused_is_said_and_all_else_is_measured(tmp_path: Path, fakes: Path, status: str, words: str) -> None:
    profile = run(tmp_path, fakes, "--instructions", FAKE_SAMPLING=status, STEPS="3")
    assert counts(profile) == {}
    assert sum(profile.tree.exclusive("gpu_time").count) >= 6
    (loss,) = [one for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE]
    assert loss.detail.startswith("Instructions are not sampled on gfx942") and words in loss.detail
